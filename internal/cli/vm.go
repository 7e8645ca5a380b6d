package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/text/console"
)

// vmFlags choose a guest.
type vmFlags struct {
	run.Guest
	list, asJSON, quiet bool
}

func newVMCmd() *cobra.Command {
	var f vmFlags
	c := &cobra.Command{
		Use:   "vm [flags] -- COMMAND [ARG…]",
		Short: "Run a command under another kernel",
		Long: strings.TrimSpace(`
Boots a Linux kernel in QEMU and runs a command there as root, with this
machine's files, environment, working directory, input and output; ends with
the command's exit code. What the command writes is thrown away, except in
folders that --share names. Nothing is left running, not even after kill -9.

--kernel takes a version (a package of the distribution, unpacked into a cache
when it is first used, not installed) or the path of an image. Where KVM does
not boot a guest its CPU is emulated, which is many times slower; figures from
there are good for ratios at most.`),
		Example: `  cnibench vm -- uname -r
  cnibench vm --kernel 6.1 --cpus 4 --memory 4G -- bash
  cnibench vm --share . -- sh -c 'modprobe wireguard && dmesg > dmesg.txt'
  cnibench vm --cpus 4 --nic virtio-net-pci --nic e1000 -- cnibench tune plan --nic eth0 --nic eth1
  cnibench vm --kernel /boot/vmlinuz-6.12.1 --modules /lib/modules/6.12.1 -- ip link
  cnibench vm --list`,
		RunE: func(c *cobra.Command, args []string) error {
			if f.list || f.Kernel == "list" {
				return listKernels(c.OutOrStdout(), f.asJSON)
			}
			if len(args) == 0 {
				return exit.Usage("no command given; see `cnibench vm --help`")
			}
			log := console.Logger(os.Stderr)
			if f.quiet {
				log = slog.New(slog.DiscardHandler)
			}
			return run.InGuest(c.Context(), &f.Guest, args, log)
		},
	}
	fl := c.Flags()
	fl.SetInterspersed(false) // flags after the command are the command's
	fl.StringVar(&f.Kernel, "kernel", "", "`version` such as 6.1 or 6.12, or the path of an image; list shows what is here (default "+vm.DefaultVersion+")")
	fl.StringVar(&f.Modules, "modules", "", "lib/modules/RELEASE `folder` of a kernel given by path (default: beside it)")
	fl.StringVar(&f.Accel, "accel", vm.AccelAuto, "auto (KVM where it really boots a guest, else tcg), kvm or tcg")
	fl.IntVar(&f.CPUs, "cpus", 0, "CPUs of the guest (default: as many as this machine has, or 1 where they are emulated by a QEMU before 8.1)")
	fl.StringVar(&f.Memory, "memory", "2G", "memory of the guest")
	fl.DurationVar(&f.Timeout, "timeout", 0, "end the guest after this time (default: never)")
	fl.StringArrayVar(&f.Share, "share", nil, "`folder` in which the guest's writes are real; may be repeated")
	fl.StringArrayVar(&f.NICs, "nic", nil, "add a network device of this `model`, "+strings.Join(vm.NICModels(), " or ")+"; may be repeated: those of one model are on one switch, and reach nothing else")
	fl.BoolVar(&f.list, "list", false, "list the kernels that are here")
	fl.BoolVar(&f.asJSON, "json", false, "with --list: print as JSON")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing but errors")
	return c
}

// listKernels prints the kernels of the cache and of this machine.
func listKernels(w io.Writer, asJSON bool) error {
	kernels := vm.Kernels()
	if asJSON {
		return json.NewEncoder(w).Encode(append([]vm.Kernel{}, kernels...))
	}
	for _, k := range kernels {
		fmt.Fprintf(w, "%-28s %-10s %s\n", k.Release, k.Source, k.Image)
	}
	if len(kernels) == 0 {
		fmt.Fprintf(w, "none yet: `cnibench vm -- COMMAND` gets %s\n", vm.DefaultVersion)
	}
	return nil
}
