//go:build linux

// Package ovs has the pieces whose datapath is Open vSwitch: those of Antrea,
// Kube-OVN and Weave Net. Next: antrea.go, ovn.go, weave.go.
package ovs

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/host"
)

// The schemas of Open vSwitch's and OVN's databases, where their packages put
// them.
const (
	ovsSchema = "/usr/share/openvswitch/vswitch.ovsschema"
	nbSchema  = "/usr/share/ovn/ovn-nb.ovsschema"
	sbSchema  = "/usr/share/ovn/ovn-sb.ovsschema"
)

// integrationBridge is the bridge of pods, as Antrea and OVN both call it.
const integrationBridge = "br-int"

// ovsPatience is how long a daemon of Open vSwitch may take to answer where
// nothing else limits it: a moment, but for an emulated kernel on a busy machine.
const ovsPatience = 2 * time.Minute

// patient is ctx with an end: its own, which knows how much there is to do, or
// ovsPatience from now.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ends := ctx.Deadline(); ends {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, ovsPatience)
}

// ovSwitch is the Open vSwitch of one node: a database, a switch daemon and
// their sockets, all in the node's own folder.
type ovSwitch struct {
	node *wire.Node
	dir  string
	kind string // of datapath: system, netdev
	// fault returns why the network is no longer what was set up, or nil.
	fault func() error
}

// switches are the nodes' Open vSwitches. The first piece to ask starts them.
func switches(ctx context.Context, f *wire.Fabric, datapath string) (map[*wire.Node]*ovSwitch, error) {
	if all, ok := wire.Shared[map[*wire.Node]*ovSwitch](f); ok {
		return all, nil
	}
	all := map[*wire.Node]*ovSwitch{}
	for _, n := range f.Nodes {
		all[n] = &ovSwitch{node: n, dir: filepath.Join(n.Dir, "ovs"), kind: datapath, fault: f.Fault}
	}
	if err := f.Parallel(ctx, func(ctx context.Context, n *wire.Node) error { return all[n].start(ctx) }); err != nil {
		return nil, err
	}
	wire.Share(f, all)
	return all, nil
}

// start makes an empty database and runs its server and the switch, with one
// bridge that forwards nothing until it is told to.
func (s *ovSwitch) start(ctx context.Context) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if err := s.database(ctx, "conf", ovsSchema); err != nil {
		return err
	}
	if err := s.serve(ctx, "conf.db", "db.sock"); err != nil {
		return err
	}
	if err := s.vsctl(ctx, "--no-wait", "--", "init", "--", "set", "Open_vSwitch", ".", "external_ids:system-id="+s.node.Name); err != nil {
		return err
	}
	if err := s.daemon("ovs-vswitchd", "unix:"+s.path("db.sock"), "--unixctl="+s.path("ovs-vswitchd.ctl")); err != nil {
		return err
	}
	return s.bridge(ctx, integrationBridge, "fail_mode=secure", "protocols=OpenFlow10,OpenFlow13,OpenFlow15")
}

// bridge adds a bridge of the node's datapath.
func (s *ovSwitch) bridge(ctx context.Context, name string, settings ...string) error {
	args := append([]string{"add-br", name, "--", "set", "Bridge", name, "datapath_type=" + s.kind}, settings...)
	if err := s.vsctl(ctx, args...); err != nil {
		return err
	}
	_, err := s.number(ctx, name)
	return err
}

// port adds a port to the bridge and returns its OpenFlow number.
func (s *ovSwitch) port(ctx context.Context, bridge, name string, settings ...string) (string, error) {
	args := []string{"add-port", bridge, name}
	if len(settings) > 0 {
		args = append(append(args, "--", "set", "Interface", name), settings...)
	}
	if err := s.vsctl(ctx, args...); err != nil {
		return "", err
	}
	return s.number(ctx, name)
}

// number returns an interface's OpenFlow port. Open vSwitch takes interfaces that it
// then can't open; those are errors here.
func (s *ovSwitch) number(ctx context.Context, name string) (string, error) {
	number, err := s.run(ctx, nil, "ovs-vsctl", "get", "Interface", name, "ofport")
	if err != nil {
		return "", err
	}
	if number = strings.TrimSpace(number); strings.HasPrefix(number, "-") || number == "[]" {
		why, _ := s.run(ctx, nil, "ovs-vsctl", "get", "Interface", name, "error")
		return "", fmt.Errorf("openvswitch: %s: %s; see `cnibench probe`", name, strings.TrimSpace(why))
	}
	return number, nil
}

// vsctl changes the switch's database and, unless told otherwise, waits until
// the switch has followed.
func (s *ovSwitch) vsctl(ctx context.Context, args ...string) error {
	_, err := s.run(ctx, nil, append([]string{"ovs-vsctl"}, args...)...)
	return err
}

// flows adds flows to the integration bridge, one a line.
func (s *ovSwitch) flows(ctx context.Context, flows []string) error {
	_, err := s.run(ctx, []byte(strings.Join(flows, "\n")+"\n"), "ovs-ofctl", "-O", "OpenFlow15", "add-flows", integrationBridge, "-")
	return err
}

// run runs a program of Open vSwitch or OVN against the node's own sockets and
// returns what it printed.
func (s *ovSwitch) run(ctx context.Context, stdin []byte, argv ...string) (string, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	out, err := host.Output(ctx, s.node.Run, host.Command{Argv: argv, Env: s.env(), Stdin: bytes.NewReader(stdin)})
	if err != nil {
		if fault := s.faultSoon(); fault != nil {
			return "", fmt.Errorf("%s: %w", argv[0], fault)
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf("%s on %s: no answer: %w", argv[0], s.node.Name, ctx.Err())
		}
		return "", err
	}
	return string(out), nil
}

// daemon runs a program until the network goes down. It logs errors only, to
// its standard error, the end of which explains its death.
func (s *ovSwitch) daemon(argv ...string) error {
	argv = append(argv, "-vsyslog:off", "-vfile:off", "-vconsole:err")
	_, err := s.node.Daemon(host.Command{Argv: argv, Env: s.env()})
	return err
}

// faultSoon returns why a program failed, if a daemon's death is the reason: that may be known
// a moment later.
func (s *ovSwitch) faultSoon() error {
	for range 10 {
		if err := s.fault(); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// serve runs the server of a database and returns when it can be asked.
func (s *ovSwitch) serve(ctx context.Context, database, socket string, remotes ...string) error {
	argv := []string{"ovsdb-server", s.path(database), "--unixctl=" + s.path(database+".ctl"), "--remote=punix:" + s.path(socket)}
	if err := s.daemon(append(argv, remotes...)...); err != nil {
		return err
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	for {
		if c, err := net.Dial("unix", s.path(socket)); err == nil {
			return c.Close()
		}
		if err := s.fault(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("ovsdb-server on %s: it does not answer: %w", s.node.Name, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// database makes an empty database of a schema.
func (s *ovSwitch) database(ctx context.Context, name, schema string) error {
	_, err := s.run(ctx, nil, "ovsdb-tool", "create", s.path(name+".db"), schema)
	return err
}

func (s *ovSwitch) path(name string) string { return filepath.Join(s.dir, name) }

// env leads every program of Open vSwitch and OVN to the node's own files
// (ovs-vswitchd(8), ovn-nbctl(8)).
func (s *ovSwitch) env() []string {
	var env []string
	for _, name := range []string{"OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVN_RUNDIR", "OVN_DBDIR", "OVN_LOGDIR"} {
		env = append(env, name+"="+s.dir)
	}
	return env
}
