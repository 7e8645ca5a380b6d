package lab

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/arena/lab/wire/all"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/host/programs"
	"github.com/cnibench/cnibench/internal/result"
)

type lab struct {
	opt      Options
	features map[string]Feature // probed so far
	standing atomic.Int32       // networks that are up or coming up
}

// New returns the lab arena. The process must be inside the lab's container
// (Contain, Enter).
func New(opt Options) (arena.Arena, error) {
	if err := opt.Check(); err != nil {
		return nil, err
	}
	if !Contained() && os.Getpid() != 1 {
		return nil, fmt.Errorf("lab: not in a container of its own; start it through lab.Contain")
	}
	var err error
	if opt.Congestion, err = chooseCongestion(opt.Congestion); err != nil {
		return nil, err
	}
	return &lab{opt: opt, features: map[string]Feature{}}, nil
}

// Name implements arena.Arena.
func (l *lab) Name() string { return "lab" }

// Environment implements arena.Arena: a node's fingerprint says everything.
func (l *lab) Environment() result.Environment { return result.Environment{} }

// Anonymous implements arena.Arena: the lab's nodes have no names to hide.
func (l *lab) Anonymous(text string) string { return text }

// Variant implements arena.Arena: the kind of underlay.
func (l *lab) Variant(c *contender.Contender) string {
	switch {
	case l.opt.Underlay != UnderlayAuto:
		return l.opt.Underlay
	case c.Requires.Underlay != "":
		return c.Requires.Underlay
	}
	return UnderlaySwitch
}

// contenderMemory is the memory to reserve for a contender, bytes: twice what the processes
// of one of 22 contenders used with their loads open (docs/lab.md). Contenders with daemons of
// OVN or Open vSwitch use more; half of the free memory is left for these.
const contenderMemory = 96 << 20

// MaxUp implements arena.Arena: as many as half of the free memory carries, or one with
// the network devices of a guest.
func (l *lab) MaxUp() int {
	if l.opt.NICDriver != "" {
		return 1
	}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 1
	}
	memory, err := proc.Meminfo()
	if err != nil || memory.MemAvailableBytes == nil {
		return 1
	}
	return max(1, int(*memory.MemAvailableBytes/2/contenderMemory))
}

// Slice implements arena.Arena.
func (*lab) Slice() (lead, length time.Duration) { return Lead, Slice }

// Supports implements arena.Arena.
func (l *lab) Supports(_ context.Context, c *contender.Contender) error {
	if c.Lab.None != "" {
		return &arena.Unsupported{Reason: c.Lab.None, Remedy: c.Lab.Remedy}
	}
	if want := c.Requires.Underlay; want != "" && want != l.Variant(c) {
		remedy := "run it with --underlay auto"
		if l.opt.NICDriver != "" {
			remedy = "leave --nic out"
		}
		return &arena.Unsupported{Reason: fmt.Sprintf("%s needs the underlay %s, not %s", c.ID, want, l.opt.Underlay), Remedy: remedy}
	}
	if fits, asked := l.opt.MTU-int(c.Datapath.Overhead), l.opt.podMTU(c); asked > fits && !c.Datapath.UnderlayPodMTU {
		return &arena.Unsupported{
			Reason: fmt.Sprintf("%s leaves its pods %d bytes of the underlay's MTU, not %d", c.ID, fits, asked),
			Remedy: fmt.Sprintf("run it with --pod-mtu %d or less", fits),
		}
	}
	pieces, err := l.compose(c)
	if err != nil {
		return err
	}
	// Before the kernel: another kernel does not help where a program is missing.
	if err := checkPrograms(c, pieces); err != nil {
		return err
	}
	if err := l.checkFeatures(c); err != nil {
		return err
	}
	for _, t := range pieces.transports {
		if t.MaxNodes > 0 && l.opt.Nodes > t.MaxNodes {
			return &arena.Unsupported{
				Reason: fmt.Sprintf("%s has no room for node%d: %s", c.ID, t.MaxNodes+1, t.Limit),
				Remedy: fmt.Sprintf("run it with --nodes %d or fewer", t.MaxNodes),
			}
		}
	}
	return nil
}

// checkPrograms returns nil, or an *arena.Unsupported that names all missing
// programs and the packages that have them.
func checkPrograms(c *contender.Contender, p pieces) error {
	var reasons, remedies []string
	for _, name := range slices.Concat(programs.Contender(c), p.plugins) {
		missing := host.CheckProgram(name)
		if missing == nil {
			continue
		}
		reason := name + ": program not found"
		if plugin, isPlugin := host.Plugin(name); isPlugin && missing.Remedy == "" {
			reason = fmt.Sprintf("there is no CNI plugin %s in %s", plugin, strings.Join(host.CNIPath(), ", "))
		}
		reasons = append(reasons, reason)
		if remedy := cmp.Or(missing.Remedy, "install "+path.Base(name)); !slices.Contains(remedies, remedy) {
			remedies = append(remedies, remedy)
		}
	}
	if reasons == nil {
		return nil
	}
	return &arena.Unsupported{Reason: strings.Join(reasons, ", "), Remedy: strings.Join(remedies, ", "), Program: true}
}

// checkFeatures returns nil, or an *arena.Unsupported that names the features
// which the contender requires and the kernel lacks or denies this user.
func (l *lab) checkFeatures(c *contender.Contender) error {
	var missing, why []string
	denied := true
	for _, name := range c.Requires.Kernel {
		f, err := l.feature(name)
		if err != nil {
			return fmt.Errorf("contender %s: %w", c.ID, err)
		}
		if !f.OK {
			denied = denied && f.Denied
			missing = append(missing, f.Option)
			why = append(why, fmt.Sprintf("%s (%s)", name, f.Error))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	u := &arena.Unsupported{
		OtherKernel: true,
		Reason:      fmt.Sprintf("kernel %s lacks %s", KernelRelease(), strings.Join(why, ", ")),
		Remedy:      fmt.Sprintf("load the module or boot a kernel that has it (%s)", strings.Join(missing, ", ")),
	}
	if denied {
		u.Reason, u.Remedy, u.Denied = "this user may not use "+strings.Join(why, ", "), "run it as root", true
	}
	return u
}

// feature probes a kernel feature once.
func (l *lab) feature(name string) (Feature, error) {
	if f, known := l.features[name]; known {
		return f, nil
	}
	found, err := Probe(name)
	if err != nil {
		return Feature{}, err
	}
	if len(found) == 0 {
		return Feature{}, fmt.Errorf("unknown kernel feature %q; cnibench probe lists the known ones", name)
	}
	l.features[name] = found[0]
	return found[0], nil
}

// pieces are the datapath pieces that a contender's file names.
type pieces struct {
	attach        *wire.Attach // nil: pods are the nodes themselves
	attachParams  wire.Params
	transports    []wire.Transport // the transport, its encryption, then the extras
	params        []wire.Params
	service       *wire.Service // nil: no Services
	serviceParams wire.Params
	plugins       []string // CNI plugins of a user's own configuration, as package host names them
}

// compose looks up the contender's pieces. The error names the contender and an
// unknown piece or parameter.
func (l *lab) compose(c *contender.Contender) (pieces, error) {
	var p pieces
	if a := c.Lab.Attach; a != nil {
		attach, err := l.attachment(a.Use)
		if err != nil {
			return p, fmt.Errorf("contender %s: %w", c.ID, err)
		}
		p.attach, p.attachParams, p.plugins = &attach, a.Params, attach.Plugins
		if err := p.attachParams.Check(a.Use, attach.Params); err != nil {
			return p, fmt.Errorf("contender %s: %w", c.ID, err)
		}
	}
	var parts []contender.Piece
	for _, piece := range []*contender.Piece{c.Lab.Transport, c.Lab.Encryption} {
		if piece != nil {
			parts = append(parts, *piece)
		}
	}
	for _, part := range append(parts, c.Lab.Extras...) {
		t, err := all.LookupTransport(part.Use)
		if err != nil {
			return p, fmt.Errorf("contender %s: %w", c.ID, err)
		}
		if !t.AnyKey {
			if err := wire.Params(part.Params).Check(part.Use, t.Params); err != nil {
				return p, fmt.Errorf("contender %s: %w", c.ID, err)
			}
		}
		p.transports, p.params = append(p.transports, t), append(p.params, part.Params)
	}
	if s := c.Lab.Service; s != nil {
		service, err := all.LookupService(s.Use)
		if err != nil {
			return p, fmt.Errorf("contender %s: %w", c.ID, err)
		}
		p.service, p.serviceParams = &service, s.Params
		if err := p.serviceParams.Check(s.Use, service.Params); err != nil {
			return p, fmt.Errorf("contender %s: %w", c.ID, err)
		}
	}
	return p, nil
}

// attachment returns the user's own configuration, or a piece of package wire.
func (l *lab) attachment(use string) (wire.Attach, error) {
	if use == CustomID {
		return l.opt.Custom.attachment()
	}
	return all.LookupAttach(use)
}

// KernelRelease returns the running kernel's release, as uname -r prints it.
func KernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}
