package run

import (
	"cmp"
	"context"
	"fmt"
	"os"
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
	"github.com/cnibench/cnibench/internal/unit"
)

// labVenue is the lab under this process's kernel.
type labVenue struct {
	options lab.Options
	custom  *contender.Contender // nil: none
	guest   *vm.Facts            // of the guest that this process runs in; nil outside of guests
}

// newHereLab returns the lab of this machine.
func newHereLab(f *Request) (Venue, error) {
	options, err := f.labOptions()
	if err == nil {
		err = f.placeOn(&options, lab.CPUs())
	}
	if err != nil {
		return nil, err
	}
	return newLab(options, vm.Here()), nil
}

func newLab(options lab.Options, guest *vm.Facts) *labVenue {
	p := &labVenue{options: options, guest: guest}
	if options.Custom != nil {
		p.custom = options.Custom.Contender()
	}
	return p
}

func (p *labVenue) Open(context.Context) (*Opened, error) {
	a, err := lab.New(p.options)
	if err != nil {
		return nil, err
	}
	if p.guest != nil {
		a = guest.New(a, p.guest)
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &Opened{Arena: a, Exe: exe, Kernel: lab.KernelRelease(), LineRate: p.options.LineRate, MTU: p.options.MTU}, nil
}

func (p *labVenue) Traits() Traits {
	return Traits{ThisMachine: true, Choice: true, CleanUp: "cnibench clean"}
}

func (p *labVenue) Footprint() string {
	return "On this machine: namespaces, links and processes inside them; the kernel takes all of\nthem back when the run ends, however it ends. Nothing outside is changed.\n"
}

func (p *labVenue) Own() []*contender.Contender {
	if p.custom == nil {
		return nil
	}
	return []*contender.Contender{p.custom}
}

func (p *labVenue) Candidates(all []*contender.Contender) []*contender.Contender { return all }

func (p *labVenue) CheckNames(ids []string) ([]string, error) {
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

func (p *labVenue) Equip(programs []string) error {
	if missing := host.Have(programs...); missing != nil {
		return exit.With(exit.Unsupported, missing)
	}
	return nil
}

func (p *labVenue) Describe(c *contender.Contender) result.ContenderInfo {
	info := result.ContenderInfo{
		ID: c.ID, Product: c.Product, Version: c.Version, Summary: c.Summary, Overhead: c.Datapath.Overhead,
		Own: c.Lab.Own, Reproduced: c.Lab.Reproduced, FormDiffers: c.Lab.Held.DescribeDifference(), Held: c.Lab.Against(), SHA256: c.SHA256,
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

func (p *labVenue) Underlays(mtus []string) ([]Venue, error) {
	var list []Venue
	var seen []int
	for _, text := range mtus {
		mtu, err := unit.ParseBytes(text)
		if err != nil {
			return nil, exit.Usage("--mtu: %v", err)
		}
		o := p.options
		o.MTU, o.Congestion = int(mtu), lab.CongestionAuto
		if err := o.Check(); err != nil {
			return nil, exit.Usage("%v", err)
		}
		if !slices.Contains(seen, o.MTU) {
			list, seen = append(list, newLab(o, p.guest)), append(seen, o.MTU)
		}
	}
	if len(list) == 0 {
		return nil, exit.Usage("--mtu: none given; give e.g. --mtu 1500,9000")
	}
	return list, nil
}

// labOptions reads the lab's flags but for the placement on CPUs: see placeOn.
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

// placeOn places the lab on the CPUs of its machine as --cpus asks.
func (f *Request) placeOn(o *lab.Options, cpus []int) (err error) {
	if f.AllCPUs && !f.Given["cpus"] {
		o.CPUs = lab.Placement{Client: cpus, Server: cpus, Rest: cpus}
	} else if o.CPUs, err = lab.ParsePlacement(f.CPUs, cpus); err != nil {
		return exit.Usage("%v", err)
	}
	f.CPUs = o.CPUs.String() // the plan remembers the CPUs that were chosen
	return nil
}

// custom returns the user's own CNI configuration. A resumed run keeps the text that
// its plan remembers. That text has no credentials: if there were any, the file must
// still be there, and only the credentials in it may have changed.
func (f *Request) custom() (*lab.CustomAttach, error) {
	transport := f.CNITransport
	if transport == "none" {
		transport = ""
	}
	if f.CNIText == "" {
		raw, err := os.ReadFile(f.CNIConf)
		if err != nil {
			return nil, err
		}
		f.CNIText = string(raw)
	} else if strings.Contains(f.CNIText, masked) || f.Given["cni-conf"] {
		raw, err := os.ReadFile(f.CNIConf)
		if err != nil {
			return nil, fmt.Errorf("the run directory holds no credentials of the configuration: %w", err)
		}
		if text, _ := maskSecrets(string(raw)); text != f.CNIText {
			return nil, fmt.Errorf("%s is not the configuration that the run was started with; only its credentials may change", f.CNIConf)
		}
		f.CNIText = string(raw)
	}
	return lab.NewCustom(f.CNIConf, []byte(f.CNIText), transport)
}
