//go:build linux

// Package ovs holds the pieces whose datapath is Open vSwitch: those of Antrea, Kube-OVN and
// Weave Net. Next: antrea.go, ovn.go, weave.go.
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

// The files with the schemas of Open vSwitch's and OVN's databases, as Debian's packages
// install them.
const (
	ovsSchema = "/usr/share/openvswitch/vswitch.ovsschema"
	nbSchema  = "/usr/share/ovn/ovn-nb.ovsschema"
	sbSchema  = "/usr/share/ovn/ovn-sb.ovsschema"
)

// integrationBridge is the name of the pods' bridge in Antrea and OVN.
const integrationBridge = "br-int"

// ovsTimeout is how long a daemon of Open vSwitch may take to answer if the caller sets no
// limit. It is long for the sake of an emulated kernel on a busy machine.
const ovsTimeout = 2 * time.Minute

// withTimeout returns ctx with a deadline: its own, or ovsTimeout from now.
func withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ends := ctx.Deadline(); ends {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, ovsTimeout)
}

// ovSwitch is the Open vSwitch of one node: a database, a switch daemon and their sockets, all
// in the node's own folder.
type ovSwitch struct {
	node *wire.Node
	dir  string
	kind string // kind of datapath: system or netdev
	// fault returns why the network is no longer what was set up, or nil.
	fault func() error
}

// switches returns the nodes' Open vSwitches. The first call starts them.
func switches(ctx context.Context, f *wire.Fabric, datapath string) (map[*wire.Node]*ovSwitch, error) {
	if all, ok := wire.FindShared[map[*wire.Node]*ovSwitch](f); ok {
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

// start makes an empty database and starts its server and the switch, with one bridge that has
// no flows yet.
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

// bridge adds a bridge to the node's datapath.
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

// number returns an interface's OpenFlow port. It returns an error if Open vSwitch accepted the
// interface but could not open it.
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

// vsctl changes the switch's database and, unless args say otherwise, waits until the switch has
// followed.
func (s *ovSwitch) vsctl(ctx context.Context, args ...string) error {
	_, err := s.run(ctx, nil, append([]string{"ovs-vsctl"}, args...)...)
	return err
}

// flows adds flows to the integration bridge, one a line.
func (s *ovSwitch) flows(ctx context.Context, flows []string) error {
	_, err := s.run(ctx, []byte(strings.Join(flows, "\n")+"\n"), "ovs-ofctl", "-O", "OpenFlow15", "add-flows", integrationBridge, "-")
	return err
}

// run runs a program of Open vSwitch or OVN with the node's own sockets and returns its
// output.
func (s *ovSwitch) run(ctx context.Context, stdin []byte, argv ...string) (string, error) {
	ctx, cancel := withTimeout(ctx)
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

// daemon runs a program until the network goes down. The program logs errors only, to its
// standard error; the last lines explain why it ended.
func (s *ovSwitch) daemon(argv ...string) error {
	argv = append(argv, "-vsyslog:off", "-vfile:off", "-vconsole:err")
	_, err := s.node.Daemon(host.Command{Argv: argv, Env: s.env()})
	return err
}

// faultSoon waits a moment and returns the end of a daemon, if that is why a program failed.
func (s *ovSwitch) faultSoon() error {
	for range 10 {
		if err := s.fault(); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// serve starts the server of a database and returns when the server answers.
func (s *ovSwitch) serve(ctx context.Context, database, socket string, remotes ...string) error {
	argv := []string{"ovsdb-server", s.path(database), "--unixctl=" + s.path(database+".ctl"), "--remote=punix:" + s.path(socket)}
	if err := s.daemon(append(argv, remotes...)...); err != nil {
		return err
	}
	ctx, cancel := withTimeout(ctx)
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

// database makes an empty database with the schema.
func (s *ovSwitch) database(ctx context.Context, name, schema string) error {
	_, err := s.run(ctx, nil, "ovsdb-tool", "create", s.path(name+".db"), schema)
	return err
}

func (s *ovSwitch) path(name string) string { return filepath.Join(s.dir, name) }

// env returns the environment with which programs of Open vSwitch and OVN use the node's own
// files (ovs-vswitchd(8), ovn-nbctl(8)).
func (s *ovSwitch) env() []string {
	var env []string
	for _, name := range []string{"OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVN_RUNDIR", "OVN_DBDIR", "OVN_LOGDIR"} {
		env = append(env, name+"="+s.dir)
	}
	return env
}
