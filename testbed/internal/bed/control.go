//go:build linux

package bed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// request is what is asked of the supervisor, one per connection to the
// socket in its state folder, which none but root can reach.
type request struct {
	Op   string        `json:"op"`
	Node Node          `json:"node,omitzero"`
	On   bool          `json:"on,omitempty"`
	Kill bool          `json:"kill,omitempty"`
	For  time.Duration `json:"for,omitempty"`
}

type answer struct {
	Error  string `json:"error,omitempty"`
	Status Status `json:"status"`
}

// Status says what runs at the moment.
type Status struct {
	NodePIDs  map[string]int `json:"nodePIDs"`  // a node's init as the supervisor numbers processes; stopped nodes have none
	Routes    bool           `json:"routes"`    // the standard plugins are configured
	KubeProxy string         `json:"kubeProxy"` // its mode, "none" when it doesn't run
}

// Status asks the supervisor what runs.
func (b *Bed) Status(ctx context.Context) (Status, error) {
	return b.ask(ctx, request{Op: "status"})
}

// StopNode kills everything in a node at once, as a power failure does.
func (b *Bed) StopNode(ctx context.Context, name string) error {
	return b.askNode(ctx, "stop-node", name)
}

// StartNode starts a stopped node again; kubelet then starts its pods.
func (b *Bed) StartNode(ctx context.Context, name string) error {
	return b.askNode(ctx, "start-node", name)
}

// PauseAPI makes the API server hang for a while or, killed, refuse
// connections. It returns when that has begun.
func (b *Bed) PauseAPI(ctx context.Context, wait time.Duration, kill bool) error {
	_, err := b.ask(ctx, request{Op: "pause-api", For: wait, Kill: kill})
	return err
}

// SetRoutes configures the standard CNI plugins on every node, with a route to
// each node's pods, or takes them off again; pods that use them must be gone.
func (b *Bed) SetRoutes(ctx context.Context, on bool) error {
	_, err := b.ask(ctx, request{Op: "routes", On: on})
	return err
}

// SetKubeProxy starts kube-proxy on every node or ends it, with its rules.
func (b *Bed) SetKubeProxy(ctx context.Context, on bool) error {
	_, err := b.ask(ctx, request{Op: "kube-proxy", On: on})
	return err
}

func (b *Bed) askNode(ctx context.Context, op, name string) error {
	n, err := b.Node(name)
	if err != nil {
		return err
	}
	_, err = b.ask(ctx, request{Op: op, Node: n})
	return err
}

func controlSocket(dir string) string { return filepath.Join(dir, "control.sock") }

func (b *Bed) ask(ctx context.Context, r request) (Status, error) {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "unix", controlSocket(b.Dir))
	if err != nil {
		return Status{}, fmt.Errorf("the test bed does not answer: %w", err)
	}
	defer connection.Close()
	stop := context.AfterFunc(ctx, func() { connection.Close() })
	defer stop()
	var a answer
	if err := errors.Join(json.NewEncoder(connection).Encode(r), json.NewDecoder(connection).Decode(&a)); err != nil {
		return Status{}, fmt.Errorf("%s: the test bed does not answer: %w", r.Op, err)
	}
	if a.Error != "" {
		return Status{}, fmt.Errorf("%s: %s", r.Op, a.Error)
	}
	return a.Status, nil
}

func (s *supervisor) serveControl() error {
	listener, err := net.Listen("unix", controlSocket(s.dir))
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				time.Sleep(time.Second)
				continue
			}
			go func() {
				defer connection.Close()
				var r request
				if err := json.NewDecoder(connection).Decode(&r); err != nil {
					return
				}
				a := answer{}
				if err := s.answer(r); err != nil {
					a.Error = err.Error()
				}
				a.Status = s.status()
				_ = json.NewEncoder(connection).Encode(a) // who asked may be gone
			}()
		}
	}()
	return nil
}

func (s *supervisor) answer(r request) error {
	switch r.Op {
	case "status":
		return nil
	case "stop-node":
		return s.stopNode(r.Node)
	case "start-node":
		return s.startNode(r.Node)
	case "pause-api":
		if r.Kill {
			return s.api.kill(r.For)
		}
		return s.api.pause(r.For)
	case "routes":
		return s.setRoutes(r.On)
	case "kube-proxy":
		return s.setKubeProxy(r.On)
	}
	return fmt.Errorf("unknown request %q", r.Op)
}

func (s *supervisor) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{NodePIDs: s.pids(), Routes: s.routes, KubeProxy: s.proxy}
}

// pids lists the inits of the running nodes; the caller holds the lock.
func (s *supervisor) pids() map[string]int {
	pids := map[string]int{}
	for name, n := range s.nodes {
		pids[name] = n.pid
	}
	return pids
}

func (s *supervisor) setRoutes(on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes = on
	pids := s.pids()
	if err := routePods(s.state.Nodes, pids, on); err != nil {
		return err
	}
	for _, n := range s.state.Nodes {
		pid := pids[n.Name]
		if pid == 0 {
			continue
		}
		root := fmt.Sprintf("/proc/%d/root", pid)
		var err error
		if on {
			err = writeConflist(root, n)
		} else {
			err = errors.Join(removeConflist(root), removeLink(pid, "cni0"))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return nil
}

func (s *supervisor) setKubeProxy(on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	signal := kubeProxyOff
	s.proxy = "none"
	if on {
		signal = kubeProxyOn
		s.proxy = s.state.Options.proxyMode()
	}
	for name, pid := range s.pids() {
		if err := unix.Kill(pid, signal); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
