package run

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/arena/guest"
	"github.com/cnibench/cnibench/internal/arena/guest/vm"
	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/secret"
	"github.com/cnibench/cnibench/internal/unit"
)

// labSettings are the lab's flags that a plan remembers.
var labSettings = []string{
	"nodes", "underlay", "mtu", "pod-mtu", "line-rate", "congestion-control", "cpus", "offload", "cni-conf", "cni-transport",
}

// labKind returns the kind of the lab with one of its names. Lab measures under this
// kernel, MicroVM in a guest; Auto uses a guest for what this kernel can't run.
func labKind(name string) Kind {
	flags := guest.SettingFlags
	if name == Lab && os.Getenv(vm.GuestEnv) == "" {
		flags = nil // with --arena lab only the process in a guest gets the guest's flags
	}
	return Kind{
		Name: name, makes: []string{Lab, MicroVM},
		flags:    slices.Concat(labSettings, flags, []string{"keep", "cache"}),
		settings: slices.Concat(labSettings, guest.SettingFlags), fixed: labSettings,
		recorded: (*Request).labRecorded,
		check: func(f *Request) error {
			if name == MicroVM && f.Keep {
				return errKeptGuest
			}
			_, err := f.Guest.Check()
			return err
		},
		place: func(f *Request) (Place, error) {
			if dir := f.dir(); dir != "" {
				if err := refuseHidden(dir); err != nil {
					return nil, err
				}
			}
			options, err := f.labOptions()
			return NewLab(options), err
		},
		Places: (*Request).underlays,
	}
}

// LabPlace is the lab on this machine, or in a guest.
type LabPlace struct {
	options lab.Options
	custom  *contender.Contender // nil: none
}

// NewLab returns the lab with those options.
func NewLab(options lab.Options) *LabPlace {
	p := &LabPlace{options: options}
	if options.Custom != nil {
		p.custom = options.Custom.Contender()
	}
	return p
}

func (p *LabPlace) Inside(ctx context.Context, use func(context.Context) error) error {
	if !lab.Contained() {
		start := lab.Contain
		if p.options.NICDriver != "" {
			start = lab.ContainWithNICs
		}
		return withCode(start(ctx, os.Args[1:]))
	}
	if err := lab.Enter(); err != nil {
		return err
	}
	ctx, stop := UntilEnded(ctx)
	defer stop()
	return use(ctx)
}

// Contain runs this same command line inside the lab's container. The error
// carries the exit code if that is not exit.Done.
func Contain(ctx context.Context) error { return contain(ctx, os.Args[1:]) }

// contain runs this program with the arguments inside the lab's container. The error
// carries the exit code if that is not exit.Done.
func contain(ctx context.Context, args []string) error {
	return withCode(lab.Contain(ctx, args))
}

func (p *LabPlace) Open(context.Context) (*Opened, error) {
	a, err := lab.New(p.options)
	if err != nil {
		return nil, err
	}
	if guest.Inside() {
		a = guest.New(a)
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &Opened{Arena: a, Exe: exe, Kernel: lab.KernelRelease(), LineRate: p.options.LineRate, MTU: p.options.MTU}, nil
}

func (p *LabPlace) Own() []*contender.Contender {
	if p.custom == nil {
		return nil
	}
	return []*contender.Contender{p.custom}
}

func (p *LabPlace) Candidates(all []*contender.Contender) []*contender.Contender { return all }

func (p *LabPlace) Named(ids []string) ([]string, error) {
	if slices.Contains(ids, kube.ThisClusterID) {
		return nil, exit.Usage("contender %s: a cluster is measured with --arena %s", kube.ThisClusterID, Kube)
	}
	given, asked := p.custom != nil, slices.Contains(ids, lab.CustomID)
	switch {
	case asked && !given:
		return nil, exit.Usage("contender %s: give its configuration with --cni-conf FILE", lab.CustomID)
	case given && !asked:
		ids = append(ids, lab.CustomID)
	}
	return ids, nil
}

func (p *LabPlace) Equip(programs []string) error {
	if missing := host.Have(programs...); missing != nil {
		return exit.With(exit.Unsupported, missing)
	}
	return nil
}

func (p *LabPlace) Describe(c *contender.Contender) result.ContenderInfo {
	info := result.ContenderInfo{
		ID: c.ID, Product: c.Product, Version: c.Version, Summary: c.Summary, Overhead: c.Datapath.Overhead,
		Own: c.Lab.Own, Reproduced: c.Lab.Reproduced, Apart: c.Lab.Held.Apart(), Held: c.Lab.Against(), SHA256: c.SHA256,
	}
	// The parts of the datapath that the lab builds.
	if c.Lab.Attach != nil {
		info.Datapath = c.Datapath.Attach
	}
	if c.Lab.Transport != nil {
		info.Datapath += " × " + c.Datapath.Transport
	}
	if c.Lab.Service != nil {
		info.Datapath += " × " + c.Datapath.Services
	}
	return info
}

// refuseHidden refuses a folder that the lab hides behind an empty file system of its own.
func refuseHidden(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if lab.HidesPath(abs) {
		return exit.Usage("%s: the lab has an empty %s of its own; choose a run directory elsewhere", dir, lab.RunDir)
	}
	return nil
}

// labOptions reads the lab's flags.
func (f *Request) labOptions() (lab.Options, error) {
	o := lab.Options{Underlay: f.Underlay, Offload: f.Offload, Congestion: f.Congestion}
	var err error
	if o.Nodes, err = strconv.Atoi(f.Nodes); err != nil {
		return o, exit.Usage("--nodes %s: a lab has a number of machines; names are for --arena %s", f.Nodes, Kube)
	}
	if o.LineRate, o.MTU, err = f.link(); err != nil {
		return o, err
	}
	if f.PodMTU != "" {
		mtu, err := unit.ParseBytes(f.PodMTU)
		if err != nil {
			return o, exit.Usage("--pod-mtu: %v", err)
		}
		o.PodMTU = int(mtu)
	}
	if o.CPUs, err = lab.ParsePlacement(f.CPUs, lab.CPUs()); err != nil {
		return o, exit.Usage("%v", err)
	}
	f.CPUs = o.CPUs.String() // the plan remembers the CPUs that were chosen
	if f.CNIConf != "" {
		if o.Custom, err = f.custom(); err != nil {
			return o, exit.Usage("--cni-conf: %v", err)
		}
	}
	if f.NIC != "" {
		o.NICDriver, o.Underlay = vm.NICDriver(f.NIC), lab.UnderlaySwitch
		f.Guest.NICs = slices.Repeat([]string{f.NIC}, o.Nodes)
		f.Guest.CPUs = cmp.Or(f.Guest.CPUs, max(runtime.NumCPU(), vm.SteeringCPUs))
	}
	if err := o.Check(); err != nil {
		return o, exit.Usage("%v", err)
	}
	return o, nil
}

// custom returns the user's own CNI configuration. A resumed run keeps the text that
// its plan remembers. That text has no credentials: if there were any, the file must
// still be there, and only the credentials in it may have changed.
func (f *Request) custom() (*lab.CustomAttach, error) {
	transport := f.CNITransport
	if transport == "none" {
		transport = ""
	}
	if f.cniText == "" {
		raw, err := os.ReadFile(f.CNIConf)
		if err != nil {
			return nil, err
		}
		f.cniText = string(raw)
	} else if strings.Contains(f.cniText, secret.Masked) || f.Given["cni-conf"] {
		raw, err := os.ReadFile(f.CNIConf)
		if err != nil {
			return nil, fmt.Errorf("the run directory holds no credentials of the configuration: %w", err)
		}
		if text, _ := secret.Mask(string(raw)); text != f.cniText {
			return nil, fmt.Errorf("%s is not the configuration that the run was started with; only its credentials may change", f.CNIConf)
		}
		f.cniText = string(raw)
	}
	return lab.NewCustom(f.CNIConf, []byte(f.cniText), transport)
}

// cniTextKey is the setting that holds the text of --cni-conf's file.
const cniTextKey = "cni-conf-text"

// labRecorded returns the lab's flags that the plan remembers, with their values.
func (f *Request) labRecorded() map[string]string {
	s := map[string]string{
		"nodes": f.Nodes, "underlay": f.Underlay, "mtu": f.MTU, "line-rate": f.LineRate,
		"congestion-control": f.Congestion, "cpus": f.CPUs, "offload": f.Offload,
	}
	if f.PodMTU != "" {
		s["pod-mtu"] = f.PodMTU
	}
	if f.CNIConf != "" {
		s["cni-conf"], s["cni-transport"] = f.CNIConf, f.CNITransport
		s[cniTextKey], _ = secret.Mask(f.cniText)
	}
	maps.Copy(s, f.Guest.Settings())
	return s
}

// underlays returns labs for a check, one for each MTU.
func (f *Request) underlays(mtus []string) ([]Place, error) {
	var list []Place
	var seen []int
	f.Congestion = lab.CongestionAuto
	for _, text := range mtus {
		f.MTU = text
		o, err := f.labOptions()
		if err != nil {
			return nil, err
		}
		if !slices.Contains(seen, o.MTU) {
			list, seen = append(list, NewLab(o)), append(seen, o.MTU)
		}
	}
	if len(list) == 0 {
		return nil, exit.Usage("--mtu: none given; give e.g. --mtu 1500,9000")
	}
	return list, nil
}
