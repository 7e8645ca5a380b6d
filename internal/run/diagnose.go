package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/atomicfile"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/diagnose"
	"github.com/cnibench/cnibench/internal/diagnose/measure"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/strictyaml"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/text/console"
	"github.com/cnibench/cnibench/internal/unit"
)

// Diagnosis is what `cnibench diagnose` asks for besides its Request.
type Diagnosis struct {
	Contender string
	UnderLoad bool
	Rate      unit.BitRate // the most that bulk sends, set by Diagnose; 0: no limit
	Prove     bool
	Cycles    int
	Slice     time.Duration // 0: the usual
	Keep      string        // file for the case; "": it is not kept
	Plain     bool          // says what goes on in plain lines instead of a log's
	Plant     *Planted      // a fault that is planted in the lab first; nil: none
}

// DefaultDiagnoseRate is the most that diagnose sends in a cluster unless the user says
// more.
const DefaultDiagnoseRate = "200M"

// Diagnose measures the paths of the contender in the request's venue and hands the verdict
// to show. The error carries the exit code: exit.Gate if there is a cause.
func Diagnose(ctx context.Context, f *Request, d Diagnosis, show func(*diagnose.Case, *diagnose.Verdict) error) error {
	venue, err := f.forOne(&d.Contender, &d.Rate)
	if err != nil {
		return err
	}
	found, err := DiagnoseVerb().In(ctx, venue, d)
	if err != nil {
		return err
	}
	if err := keepCase(d.Keep, found); err != nil {
		return err
	}
	v := diagnose.Diagnose(found)
	return errors.Join(show(found, v), verdictCode(v))
}

// DiagnoseVerb measures a case.
func DiagnoseVerb() Verb[Diagnosis, *diagnose.Case] {
	return Verb[Diagnosis, *diagnose.Case]{Name: "diagnose", Do: measureCase}
}

func measureCase(ctx context.Context, in *Inside, d Diagnosis) (found *diagnose.Case, err error) {
	if cluster, ok := in.Venue.(*clusterVenue); ok && d.Prove { // settings are tried on the nodes and in the pods
		cluster.Options.OnNodes, cluster.Options.NetAdmin = true, true
	}
	log := console.Logger(os.Stderr)
	progress := func(text string) { log.Info(text) }
	if d.Plain {
		progress = console.PlainLines(os.Stderr)
	}
	progress(d.Contender + " comes up")
	up, err := bringUp(ctx, in.Venue, d.Contender)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, up.Network.Down(context.WithoutCancel(ctx))) }()
	if err := plantFaults(ctx, d.Plant, up.Network); err != nil {
		return nil, err
	}
	progress(begun(up))
	o := measure.Options{Exe: up.Exe, MaxRate: d.Rate, UnderLoad: d.UnderLoad, Prove: d.Prove || in.Venue.Traits().ThisMachine, Cycles: d.Cycles, Slice: d.Slice, Progress: progress, Seed: uint64(time.Now().UnixNano())}
	var yours *workloads
	if cluster, ok := up.Arena.(*kube.Arena); ok {
		if yours, err = watchWorkloads(ctx, cluster); err != nil {
			return nil, err
		}
		o.Name, o.Names, o.Server = cluster.RealName, []string{clusterName}, cluster.DNS(ctx)
		o.OwnMachine, o.Journal = true, clusterJournal
		o.Machine = func(ctx context.Context, node arena.Endpoint) (*agent.Client, error) {
			return agent.Start(ctx, onMachine{node}, up.Exe, map[string]string{"endpoint": node.Name()}, sysmon.ScopeNode)
		}
	}
	found, err = measure.Measure(ctx, up.Network, o)
	if ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	if err != nil {
		return nil, err
	}
	found.Arena, found.Contender = up.Arena.Name(), up.contender.ID
	if yours != nil {
		yours.finish(ctx, found)
	}
	return found, nil
}

// workloads are the pods that --pod and --to name.
type workloads struct {
	cluster *kube.Arena
	pods    []diagnose.Snapshot
	begin   []kube.PodCounters // zero values where the kubelet did not answer
	unseen  []diagnose.Unseen
}

// watchWorkloads reads what there is of the user's pods before anything is measured.
func watchWorkloads(ctx context.Context, cluster *kube.Arena) (*workloads, error) {
	pods, unseen, err := cluster.Workloads(ctx)
	w := &workloads{cluster: cluster, pods: pods, unseen: unseen}
	for _, p := range pods {
		begin, err := cluster.Cluster().Counters(ctx, p.Node, p.Endpoint)
		if err != nil || len(begin.Values) == 0 {
			why := "its kubelet counts nothing of it"
			if err != nil {
				why = err.Error()
			}
			namespace, name, _ := strings.Cut(p.Endpoint, "/")
			w.unseen = append(w.unseen, diagnose.Unseen{ID: "cpu-throttled", Why: fmt.Sprintf("whether %s is held by its CPU limit: %s", p.Endpoint, why),
				Remedy: fmt.Sprintf("kubectl -n %s exec %s -- cat /sys/fs/cgroup/cpu.stat, twice: nr_throttled must stand still", namespace, name)})
		}
		w.begin = append(w.begin, begin)
		if p.HostNetwork {
			w.unseen = append(w.unseen, diagnose.Unseen{ID: "usual", Why: p.Endpoint + " is in its node's own network: the paths between nodes are its own"})
		}
	}
	return w, err
}

// finish adds the pods to the case, with what they did since.
func (w *workloads) finish(ctx context.Context, c *diagnose.Case) {
	c.Policies, c.Unseen = w.cluster.Policies(ctx), append(c.Unseen, w.unseen...)
	c.Snapshots = append(c.Snapshots, w.pods...)
	for i, p := range w.pods {
		if len(w.begin[i].Values) == 0 {
			continue
		}
		end, err := w.cluster.Cluster().Counters(ctx, p.Node, p.Endpoint)
		if err != nil {
			continue
		}
		grown := map[string]float64{}
		for name, v := range end.Values {
			grown[name] = max(0, v-w.begin[i].Values[name])
		}
		c.Paths = append(c.Paths, diagnose.Path{Kind: diagnose.Yours, Back: i > 0, From: p.Endpoint, Probes: map[string]diagnose.Probe{
			diagnose.Idle: {Seconds: end.At - w.begin[i].At, Counters: map[string]map[string]float64{p.Endpoint: grown}}}})
	}
}

// begun says what is looked at, in a line.
func begun(up *upNetwork) string {
	env := up.Arena.Environment()
	words := []string{fmt.Sprintf("%d nodes", len(up.Network.Nodes()))}
	if product := strings.TrimSpace(env["kube.cni.product"] + " " + env["kube.cni.version"] + " " + env["kube.cni.transport"]); product != "" {
		words = append(words, product)
	} else {
		words = append(words, up.contender.ID)
	}
	if version := env["kube.version"]; version != "" {
		words = append(words, "Kubernetes "+version)
	}
	return strings.Join(append(words, "kernel "+up.Kernel), ", ")
}

const (
	// clusterName is looked up in a cluster's DNS.
	clusterName = "kubernetes.default.svc.cluster.local."
	// clusterJournal is the folder of the journal on a cluster's nodes: that of tune for root.
	clusterJournal = "/var/lib/cnibench"
)

// onMachine starts this program in the mount namespace of the pod's node, where the
// journal of its settings is.
type onMachine struct{ arena.Endpoint }

func (m onMachine) Start(ctx context.Context, c host.Command) (host.Process, error) {
	c.Argv = append([]string{c.Argv[0], "agent", "on-node", "--"}, c.Argv[1:]...)
	return m.Endpoint.Start(ctx, c)
}

// Planted is a fault of the confusion matrix: commands that plant it in a lab, and what
// must be found.
type Planted struct {
	Cause     string `yaml:"cause" json:"cause"`
	Contender string `yaml:"contender" json:"contender"`
	How       string `yaml:"how" json:"how"` // in words
	Steps     []struct {
		At  string `yaml:"at" json:"at"`   // endpoint of the lab: node1, node2-pod1
		Run string `yaml:"run" json:"run"` // by sh
	} `yaml:"steps" json:"steps"`
	// Expected is the first cause and its place; an empty field is not looked at. The ID
	// "usual" is none.
	Expected ExpectedClaim `yaml:"expected" json:"expected"`
	// Also are the other causes that were planted at the same time, named anywhere in the answer.
	Also  []ExpectedClaim `yaml:"also" json:"also"`
	Flags []string        `yaml:"flags" json:"flags"` // of cnibench diagnose
}

// ExpectedClaim is a cause with its place; an empty field is not looked at.
type ExpectedClaim struct {
	ID        string `yaml:"id" json:"id"`
	Node      string `yaml:"node" json:"node"`
	Device    string `yaml:"device" json:"device"`
	Direction string `yaml:"direction" json:"direction"`
}

// Is says that the claim is the expected one: of that cause, and at that place.
func (e ExpectedClaim) Is(x diagnose.Claim) (cause, place bool) {
	same := func(wanted, got string) bool { return wanted == "" || wanted == got }
	cause = e.ID == x.ID
	return cause, cause && same(e.Node, x.Node) && same(e.Device, x.Device) && same(e.Direction, x.Direction)
}

// ReadPlanted reads a file of corpus/lab.
func ReadPlanted(file string) (p Planted, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return p, err
	}
	return p, strictyaml.Decode(file, bytes.NewReader(text), &p)
}

// plantFaults carries out the steps of a plant in the lab.
func plantFaults(ctx context.Context, p *Planted, network arena.Network) error {
	if p == nil {
		return nil
	}
	all := append(network.Nodes(), network.Pods()...)
	for _, step := range p.Steps {
		at, err := text.Find("endpoint", step.At, all, arena.Endpoint.Name)
		if err != nil {
			return err
		}
		if _, err := host.Output(ctx, at, host.Command{Argv: []string{"sh", "-c", step.Run}}); err != nil {
			return fmt.Errorf("plant at %s: %w", step.At, err)
		}
	}
	return nil
}

// verdictCode returns the error that carries the exit code of a verdict.
func verdictCode(v *diagnose.Verdict) error {
	if v.Verdict == diagnose.Found {
		return exit.With(exit.Gate, nil)
	}
	return nil
}

func keepCase(file string, c *diagnose.Case) error {
	if file == "" {
		return nil
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return atomicfile.ReplaceFile(file, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}
