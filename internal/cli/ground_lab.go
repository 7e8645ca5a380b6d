package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// labSettings are the lab's flags that a plan remembers.
var labSettings = []string{
	"nodes", "underlay", "mtu", "line-rate", "congestion-control", "cpus", "offload", "cni-conf", "cni-transport",
}

// labRow is the lab by one of its names: natively what this kernel can and the
// rest in a guest, all natively, or all in a guest.
func labRow(name string) arenaRow {
	return arenaRow{
		name: name, makes: []string{arenaLab, arenaMicroVM},
		flags:    slices.Concat(labSettings, guestSettings, []string{"keep", "cache"}),
		settings: slices.Concat(labSettings, guestSettings), fixed: labSettings,
		recorded: (*runFlags).labRecorded,
		check: func(f *runFlags) error {
			if name == arenaMicroVM && f.keep {
				return errKeptGuest
			}
			_, err := f.guest.vm().check()
			return err
		},
		ground: func(f *runFlags) (ground, error) {
			if dir := f.dir(); dir != "" {
				if err := hidden(dir); err != nil {
					return nil, err
				}
			}
			options, err := f.labOptions()
			return newLabGround(options), err
		},
		grounds: (*checkFlags).underlays, probe: probeLab, clean: cleanLab,
	}
}

// labGround is the lab on this machine, or in a guest.
type labGround struct {
	options lab.Options
	custom  *contender.Contender // nil: none
}

func newLabGround(options lab.Options) *labGround {
	g := &labGround{options: options}
	if options.Custom != nil {
		g.custom = options.Custom.Contender()
	}
	return g
}

func (g *labGround) lead(c *cobra.Command, j *job) error {
	if !lab.Contained() {
		return j.lead(c)
	}
	j.contained = true
	return g.inside(c, func(ctx context.Context) error { return j.run(ctx, c) })
}

func (g *labGround) inside(c *cobra.Command, use func(context.Context) error) error {
	if !lab.Contained() {
		return contain(c.Context())
	}
	if err := lab.Enter(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context(), lab.EndSignals()...)
	defer stop()
	return use(ctx)
}

// contain runs this same command line inside the lab's container and ends
// with its exit code.
func contain(ctx context.Context) error {
	log := logger(os.Stderr)
	code, err := lab.Contain(ctx, func(format string, args ...any) { log.Error(fmt.Sprintf(format, args...)) })
	if err != nil {
		return err
	}
	if code != exitDone {
		return &exitError{code, nil}
	}
	return nil
}

func (g *labGround) open(context.Context) (*opened, error) {
	a, err := lab.New(g.options)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &opened{arena: a, exe: exe, kernel: lab.KernelRelease(), lineRate: g.options.LineRate, mtu: g.options.MTU}, nil
}

func (g *labGround) own() []*contender.Contender {
	if g.custom == nil {
		return nil
	}
	return []*contender.Contender{g.custom}
}

func (g *labGround) candidates(all []*contender.Contender) []*contender.Contender { return all }

func (g *labGround) named(ids []string) ([]string, error) {
	if slices.Contains(ids, kube.ThisClusterID) {
		return nil, usage("contender %s: a cluster is measured with --arena %s", kube.ThisClusterID, arenaKube)
	}
	given, asked := g.custom != nil, slices.Contains(ids, lab.CustomID)
	switch {
	case asked && !given:
		return nil, usage("contender %s: give its configuration with --cni-conf FILE", lab.CustomID)
	case given && !asked:
		ids = append(ids, lab.CustomID)
	}
	return ids, nil
}

func (g *labGround) equip(programs []host.Program) error {
	var missing []host.Program
	for _, p := range programs {
		if host.Have(p.Name) != nil {
			missing = append(missing, p)
		}
	}
	return missingPrograms(missing)
}

func (g *labGround) describe(c *contender.Contender) result.ContenderInfo {
	info := result.ContenderInfo{
		ID: c.ID, Product: c.Product, Version: c.Version, Summary: c.Summary, Overhead: c.Datapath.Overhead,
		Own: c.Lab.Own, Reproduced: c.Lab.Reproduced,
	}
	// What the lab has of the datapath.
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

// hidden refuses a folder that the lab can't write through to the disk.
func hidden(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if lab.HidesPath(abs) {
		return usage("%s: the lab has an empty %s of its own; choose a run directory elsewhere", dir, lab.RunDir)
	}
	return nil
}

// labOptions reads the lab's flags.
func (f *runFlags) labOptions() (lab.Options, error) {
	o := lab.Options{Underlay: f.underlay, Offload: f.offload, Congestion: f.congestion, CNIPath: cniPath()}
	var err error
	if o.Nodes, err = strconv.Atoi(f.nodes); err != nil {
		return o, usage("--nodes %s: a lab has a number of machines; names are for --arena %s", f.nodes, arenaKube)
	}
	mtu, err := unit.ParseBytes(f.mtu)
	if err != nil {
		return o, usage("--mtu: %v", err)
	}
	o.MTU = int(mtu)
	if f.line != "" {
		if o.LineRate, err = unit.ParseBitRate(f.line); err != nil {
			return o, usage("--line-rate: %v", err)
		}
	}
	if o.CPUs, err = lab.ParsePlacement(f.cpus, lab.CPUs()); err != nil {
		return o, usage("%v", err)
	}
	f.cpus = o.CPUs.String() // what the plan remembers: which CPUs were whose
	if f.cniConf != "" {
		if o.Custom, err = f.custom(); err != nil {
			return o, usage("--cni-conf: %v", err)
		}
	}
	if err := o.Check(); err != nil {
		return o, usage("%v", err)
	}
	return o, nil
}

// custom is the user's own configuration; a resumed run keeps the text that it
// was started with.
func (f *runFlags) custom() (*lab.CustomAttach, error) {
	join := f.cniJoin
	if join == "none" {
		join = ""
	}
	if f.cniText == "" {
		raw, err := os.ReadFile(f.cniConf)
		if err != nil {
			return nil, err
		}
		f.cniText = string(raw)
	}
	return lab.NewCustom(f.cniConf, []byte(f.cniText), join)
}

// cniPath is CNI_PATH, as for other runtimes, or the usual folders.
func cniPath() []string {
	if p := os.Getenv("CNI_PATH"); p != "" {
		return filepath.SplitList(p)
	}
	return lab.DefaultCNIPath
}

// cniTextKey is the setting that holds the text of --cni-conf's file.
const cniTextKey = "cni-conf-text"

// labRecorded is what the plan remembers of the lab's flags.
func (f *runFlags) labRecorded() map[string]string {
	s := map[string]string{
		"nodes": f.nodes, "underlay": f.underlay, "mtu": f.mtu, "line-rate": f.line,
		"congestion-control": f.congestion, "cpus": f.cpus, "offload": f.offload,
	}
	if f.cniConf != "" {
		s["cni-conf"], s["cni-transport"], s[cniTextKey] = f.cniConf, f.cniJoin, f.cniText
	}
	maps.Copy(s, f.guest.settings())
	return s
}
