//go:build linux

package bed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/testbed/internal/pki"
)

// Descriptors that the supervisor is started with.
const (
	listenerFD = 3 // a listening socket of the machine, for the API server
	lifelineFD = 4 // ends when Up dies; a byte on it says that the test bed stays
	reportFD   = 5 // JSON lines of type report
)

// report is what the supervisor tells Up, until it is ready or has failed.
type report struct {
	Step  string `json:"step,omitempty"`
	Error string `json:"error,omitempty"`
	Ready bool   `json:"ready,omitempty"`
}

// supervisor is the init of a test bed's namespaces.
type supervisor struct {
	dir   string
	state state
	k     *keeper
	admin *client
	ca    []byte

	mu     sync.Mutex // one change at a time
	api    *daemon
	routes bool
	proxy  string                 // mode of kube-proxy
	nodes  map[string]runningNode // by name, those that run
}

// runningNode is a node's init.
type runningNode struct {
	pid   int
	ended <-chan struct{}
}

// Supervise is the program of the supervisor. It never returns without an error.
func Supervise(dir string) error {
	reports := os.NewFile(reportFD, "report")
	for _, fd := range []int{listenerFD, lifelineFD, reportFD} {
		unix.CloseOnExec(fd)
	}
	go endWithUp()
	tell := func(r report) {
		if encoded, err := json.Marshal(r); err == nil {
			_, _ = reports.Write(append(encoded, '\n')) // Up may be gone, then we end, too
		}
	}
	err := supervise(dir, func(step string) { tell(report{Step: step}) })
	if err != nil {
		tell(report{Error: err.Error()})
		return err
	}
	tell(report{Ready: true})
	if err := reports.Close(); err != nil {
		return err
	}
	select {}
}

// endWithUp ends everything if Up dies before it has said that it is content.
func endWithUp() {
	lifeline := os.NewFile(lifelineFD, "lifeline")
	if _, err := io.ReadFull(lifeline, make([]byte, 1)); err == nil {
		return
	}
	_ = unix.Kill(-1, unix.SIGKILL)
	os.Exit(1)
}

func supervise(dir string, step func(string)) error {
	s := &supervisor{dir: dir, nodes: map[string]runningNode{}}
	var err error
	if s.state, err = readState(dir); err != nil {
		return err
	}
	s.proxy, s.routes = s.state.Options.KubeProxy, s.state.Options.CNI == "routes"
	if err := s.contain(); err != nil {
		return err
	}
	if err := controlNetwork(); err != nil {
		return err
	}
	s.k = newKeeper()
	if err := s.proxyAPI(); err != nil {
		return err
	}
	if err := s.serveControl(); err != nil {
		return err
	}
	// Nodes start containerd meanwhile and wait for the API server by themselves.
	step("starting etcd, the API server and the nodes")
	logs := filepath.Join(dir, "logs")
	certificates := filepath.Join(dir, "pki")
	if _, err := s.k.keep(logs, "etcd", etcdArgs("etcd", filepath.Join(dir, "memory", "etcd"))); err != nil {
		return err
	}
	if err := retry(s.state.Options.limit(30*time.Second), func(context.Context) error { return dial(etcdURL[len("http://"):]) }); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	if s.api, err = s.k.keep(logs, "kube-apiserver", apiServerArgs(s.state.Programs, certificates)); err != nil {
		return err
	}
	if s.ca, err = os.ReadFile(filepath.Join(certificates, "ca.crt")); err != nil {
		return err
	}
	kubeconfig, err := os.ReadFile(filepath.Join(dir, "kubeconfig-inside"))
	if err != nil {
		return err
	}
	if s.admin, err = newClient(kubeconfig, s.state.Options); err != nil {
		return err
	}
	for _, n := range s.state.Nodes {
		if err := s.startNode(n); err != nil {
			return err
		}
	}
	if err := s.waitForAPI(); err != nil {
		return err
	}
	for name, argv := range map[string][]string{
		"kube-controller-manager": controllerArgs(s.state.Programs, certificates, s.state.Options),
		"kube-scheduler":          schedulerArgs(s.state.Programs, certificates),
	} {
		if _, err := s.k.keep(logs, name, argv); err != nil {
			return err
		}
	}
	step("waiting for the nodes")
	for _, n := range s.state.Nodes {
		if err := s.createNode(n); err != nil {
			return err
		}
	}
	return s.waitForNodes()
}

// contain gives the supervisor mounts and a cgroup of its own. The kernel did
// the rest.
func (s *supervisor) contain() error {
	group := []string{groupName(s.state.ID), "control-plane"}
	if err := makeGroup(group...); err != nil {
		return err
	}
	if err := joinGroup(group...); err != nil {
		return err
	}
	if err := privateMounts(); err != nil {
		return err
	}
	if err := mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	if err := memory("/run"); err != nil {
		return err
	}
	if err := memory(filepath.Join(s.dir, "memory")); err != nil {
		return err
	}
	// Nothing can be laid over a folder that is itself laid over another, as in
	// a container of this machine: containers' files then lie in memory, too.
	var fsinfo unix.Statfs_t
	if err := unix.Statfs(s.dir, &fsinfo); err != nil {
		return err
	}
	if fsinfo.Type == unix.OVERLAYFS_SUPER_MAGIC {
		if err := memory(filepath.Join(s.dir, "nodes")); err != nil {
			return err
		}
	}
	return unix.Sethostname([]byte("testbed"))
}

// proxyAPI passes connections from the machine's loopback to the API server;
// TLS goes through, so nobody is let in who has no certificate.
func (s *supervisor) proxyAPI() error {
	file := os.NewFile(listenerFD, "listener")
	listener, err := net.FileListener(file)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	go func() {
		for {
			outer, err := listener.Accept()
			if err != nil {
				fmt.Fprintln(os.Stderr, "API server's socket:", err)
				time.Sleep(time.Second)
				continue
			}
			go func() {
				defer outer.Close()
				inner, err := net.Dial("tcp", netip.AddrPortFrom(controlAddr, apiPort).String())
				if err != nil {
					return
				}
				defer inner.Close()
				go func() {
					_, _ = io.Copy(inner, outer)
					_ = inner.(*net.TCPConn).CloseWrite()
				}()
				_, _ = io.Copy(outer, inner)
			}()
		}
	}()
	return nil
}

func dial(addr string) error {
	connection, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	return connection.Close()
}

func (s *supervisor) waitForAPI() error {
	err := retry(s.state.Options.limit(2*time.Minute), func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.admin.server+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := s.admin.http.Do(request)
		if err != nil {
			return err
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("not ready: %s", response.Status)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the API server: %w; see logs/kube-apiserver.log", err)
	}
	return nil
}

// createNode tells the API server of a node, with the addresses of its pods:
// so they are known before it is there.
func (s *supervisor) createNode(n Node) error {
	return s.admin.do(context.Background(), http.MethodPost, "/api/v1/nodes", map[string]any{
		"apiVersion": "v1",
		"kind":       "Node",
		"metadata":   map[string]any{"name": n.Name},
		"spec":       map[string]any{"podCIDR": n.PodCIDR, "podCIDRs": []any{n.PodCIDR}},
	}, nil)
}

// waitForNodes waits until every node can run what it is able to: pods, or
// without a CNI those on its own network.
func (s *supervisor) waitForNodes() error {
	want := map[string]string{"True": "KubeletReady"}
	if !s.routes {
		want = map[string]string{"False": "KubeletNotReady"}
	}
	err := retry(s.state.Options.limit(2*time.Minute), func(ctx context.Context) error {
		// A fresh one each time: reading JSON empties no field that is missing.
		var list struct {
			Items []struct {
				Metadata struct{ Name string }
				Spec     struct{ Taints []struct{ Key string } }
				Status   struct {
					Conditions []struct{ Type, Status, Reason, Message string }
				}
			}
		}
		if err := s.admin.do(ctx, http.MethodGet, "/api/v1/nodes", nil, &list); err != nil {
			return err
		}
		for _, node := range list.Items {
			there := false
			for _, c := range node.Status.Conditions {
				there = there || c.Type == "Ready" && want[c.Status] == c.Reason
			}
			if !there || s.routes && len(node.Spec.Taints) > 0 {
				return fmt.Errorf("%s: conditions %v, taints %v", node.Metadata.Name, node.Status.Conditions, node.Spec.Taints)
			}
		}
		// Without these no pod starts in the default namespace.
		for _, path := range []string{"/serviceaccounts/default", "/configmaps/kube-root-ca.crt"} {
			if err := s.admin.do(ctx, http.MethodGet, "/api/v1/namespaces/default"+path, nil, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the nodes did not become ready: %w; see logs/node-*/", err)
	}
	return nil
}

// startNode starts a node in namespaces of its own.
func (s *supervisor) startNode(n Node) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, running := s.nodes[n.Name]; running {
		return fmt.Errorf("%s runs already", n.Name)
	}
	kubelet, proxy, err := s.nodeKubeconfigs(n)
	if err != nil {
		return err
	}
	if err := makeGroup(groupName(s.state.ID), n.Name); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "logs", n.Name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	defer write.Close()
	pid, status, err := s.k.startWith([]string{filepath.Join(s.dir, "share", "testbed"), "internal-node"}, &os.ProcAttr{
		Env:   nodeEnv(),
		Files: []*os.File{null, log, log, read},
		Sys: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
			Setsid:     true,
		},
	})
	if err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	ended := make(chan struct{})
	s.nodes[n.Name] = runningNode{pid: pid, ended: ended}
	go s.nodeEnd(n.Name, pid, status, ended)
	if err := connectNode(n, pid); err != nil {
		return errors.Join(err, unix.Kill(pid, unix.SIGKILL))
	}
	if s.routes {
		if err := routePods(s.state.Nodes, map[string]int{n.Name: pid}, true); err != nil {
			return errors.Join(err, unix.Kill(pid, unix.SIGKILL))
		}
	}
	return json.NewEncoder(write).Encode(nodeConfig{
		ID: s.state.ID, Dir: s.dir, Options: s.state.Options, Node: n, Programs: s.state.Programs,
		KubeProxy: s.proxy, Routes: s.routes,
		CA: s.ca, Kubelet: kubelet, Proxy: proxy,
	})
}

// nodeEnd notes the end of a node's init.
func (s *supervisor) nodeEnd(name string, pid int, status <-chan unix.WaitStatus, ended chan<- struct{}) {
	end := <-status
	fmt.Fprintf(os.Stderr, "%s ended (exit %d, signal %v)\n", name, end.ExitStatus(), end.Signal())
	close(ended)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[name].pid == pid {
		delete(s.nodes, name)
	}
}

// stopNode kills everything in a node at once, as a power failure would.
func (s *supervisor) stopNode(n Node) error {
	s.mu.Lock()
	node, running := s.nodes[n.Name]
	delete(s.nodes, n.Name)
	s.mu.Unlock()
	if !running {
		return fmt.Errorf("%s is stopped already", n.Name)
	}
	if err := unix.Kill(node.pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	<-node.ended
	return removeGroup(s.state.Options.limit(10*time.Second), groupName(s.state.ID), n.Name)
}

func (s *supervisor) nodeKubeconfigs(n Node) (kubelet, proxy []byte, err error) {
	if kubelet, err = os.ReadFile(filepath.Join(s.dir, "pki", n.Name+".kubeconfig")); err != nil {
		return nil, nil, err
	}
	proxy, err = os.ReadFile(filepath.Join(s.dir, "pki", "proxy.kubeconfig"))
	return kubelet, proxy, err
}

// writePKI writes every certificate and kubeconfig of a test bed.
func writePKI(dir string, nodes []Node, hostAPI string) error {
	ca, err := pki.NewAuthority("cnibench-testbed")
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, "pki")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	insideAPI := fmt.Sprintf("https://%s:%d", controlAddr, apiPort)
	files := map[string][]byte{"pki/ca.crt": ca.PEM}
	client := func(name, user string, groups ...string) error {
		pair, err := ca.Client(user, groups...)
		if err != nil {
			return err
		}
		if name == "admin" {
			files["pki/admin.crt"], files["pki/admin.key"] = pair.Cert, pair.Key
			files["kubeconfig"] = pki.Kubeconfig(hostAPI, ca.PEM, pair)
			files["kubeconfig-inside"] = pki.Kubeconfig(insideAPI, ca.PEM, pair)
			return nil
		}
		files["pki/"+name+".kubeconfig"] = pki.Kubeconfig(insideAPI, ca.PEM, pair)
		return nil
	}
	if err := errors.Join(
		client("admin", "admin", "system:masters"),
		client("controller-manager", "system:kube-controller-manager"),
		client("scheduler", "system:kube-scheduler"),
		client("proxy", "system:kube-proxy"),
	); err != nil {
		return err
	}
	for _, n := range nodes {
		if err := client(n.Name, "system:node:"+n.Name, "system:nodes"); err != nil {
			return err
		}
	}
	// Inside, from this machine, and from pods.
	addrs := []netip.Addr{controlAddr, netip.AddrFrom4([4]byte{127, 0, 0, 1}), kubernetesIP}
	server, err := ca.Server(addrs, "kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")
	if err != nil {
		return err
	}
	files["pki/apiserver.crt"], files["pki/apiserver.key"] = server.Cert, server.Key
	if files["pki/tokens.key"], err = pki.NewKey(); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
