package check

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/unit"
)

// encryption sends marked payloads on every path while both nodes watch their
// interface on the underlay: a marker that is seen there was sent in clear.
// What can't be seen proves nothing, so the watchers first have to see a
// marker that goes from node to node past the pod network.
type encryption struct{}

func (encryption) Info() Info {
	return Info{"encryption", "whether what pods send can be read between the nodes: a marked payload, watched for on the underlay"}
}

// The facts that the check can find.
const (
	plain     = "plain"     // the marker was seen on the underlay
	encrypted = "encrypted" // it was not, and packets of a cipher were
	unseen    = "unseen"    // neither
)

// control is the marker of the counter-proof.
const control = "control"

// markedSize is a payload that no path cuts in two.
const markedSize = 256

// ciphers are the labels of packets that nobody reads on their way, with how
// people call them.
var ciphers = map[string]string{"esp": "ESP", "wireguard": "WireGuard", "sleeve": "Weave's sleeve"}

// way is one path that a marker takes, in both directions.
type way struct {
	name string // of the path
	from *agent.Client
	to   agent.Probe
	back *agent.Client // sends a marker the other way too; nil: only replies come back
	home agent.Probe
}

func (e encryption) Run(ctx context.Context, s *Subject) (res Result, err error) {
	res = Result{Check: "encryption", Contender: s.Contender.ID}
	hostPair, err := s.Network.Pair(ctx, arena.PathHost)
	if err != nil {
		return res, err
	}
	markers := map[string][]byte{control: nil, arena.PathPod: nil, arena.PathService: nil}
	for name := range markers {
		markers[name] = make([]byte, 32)
		_, _ = rand.Read(markers[name]) // never fails
	}
	w := watchers{}
	for _, node := range []arena.Endpoint{hostPair.Client, hostPair.Server} {
		a, err := s.Agent(ctx, node)
		if err != nil {
			return res, err
		}
		if err := a.Sniff(ctx, agent.Sniff{Device: s.Network.Uplink(), Markers: markers}); err != nil {
			return res, errors.Join(fmt.Errorf("watch the underlay at %s: %w", node.Name(), err), w.stop(ctx))
		}
		w = append(w, watcher{node.Name(), a})
	}
	defer func() { err = errors.Join(err, w.stop(ctx)) }()

	probe := func(e arena.Endpoint, marker string) (agent.Probe, error) {
		at, err := s.Echo(ctx, e)
		return agent.Probe{Target: at, Size: markedSize, Payload: markers[marker]}, err
	}
	to, err := probe(hostPair.Server, control)
	if err != nil {
		return res, err
	}
	if err := reach(ctx, w[0].agent, to); err != nil {
		return res, fmt.Errorf("counter-proof: %w", err)
	}
	before, err := w.look(ctx)
	if err != nil {
		return res, err
	}
	for _, protocol := range []string{"tcp", "udp"} {
		for _, seen := range before {
			if len(seen.marked(control, protocol)) == 0 {
				return res, fmt.Errorf("counter-proof: %s did not see a marker that went plain from node to node over %s: nothing that it does not see is proven to be encrypted", seen.node, protocol)
			}
		}
	}

	ways, skipped, err := e.ways(ctx, s, probe)
	if err != nil {
		return res, err
	}
	var broken error // a path that is not there leaves the others to be judged
	ways = slices.DeleteFunc(ways, func(x way) bool {
		err := reach(ctx, x.from, x.to)
		if err == nil && x.back != nil {
			err = reach(ctx, x.back, x.home)
		}
		if err != nil {
			broken = errors.Join(broken, fmt.Errorf("path %s: %w", x.name, err))
		}
		return err != nil
	})
	after, err := w.look(ctx)
	if err != nil {
		return res, err
	}
	promised := s.Contender.Features.Encryption
	for _, x := range ways {
		for _, protocol := range []string{"tcp", "udp"} {
			c, word := judgeWire(x.name, protocol, promised, before, after)
			res.Cases = append(res.Cases, c)
			res.set(res.key(c.Name), word+": "+c.Text)
		}
	}
	for _, c := range skipped {
		res.Cases = append(res.Cases, c)
		res.set(res.key(c.Name), "skip: "+c.Text)
	}
	return res, broken
}

// ways are the paths that cross the underlay, and the cases of those that
// don't, or that are not there.
func (encryption) ways(ctx context.Context, s *Subject, probe func(arena.Endpoint, string) (agent.Probe, error)) (ways []way, skipped []Case, err error) {
	pair, err := s.Network.Pair(ctx, arena.PathPod)
	if err != nil {
		return nil, nil, err
	}
	pod := way{name: arena.PathPod}
	if pod.from, err = s.Agent(ctx, pair.Client); err != nil {
		return nil, nil, err
	}
	if pod.back, err = s.Agent(ctx, pair.Server); err != nil {
		return nil, nil, err
	}
	if pod.to, err = probe(pair.Server, pod.name); err != nil {
		return nil, nil, err
	}
	if pod.home, err = probe(pair.Client, pod.name); err != nil {
		return nil, nil, err
	}
	ways = append(ways, pod)

	service := way{name: arena.PathService, from: pod.from}
	if service.to, err = probe(pair.Server, service.name); err != nil {
		return nil, nil, err
	}
	port := service.to.Target.Port()
	through, _, err := s.Network.Service(ctx, []arena.Port{{Protocol: arena.TCP, Number: port}, {Protocol: arena.UDP, Number: port}}, 0)
	if u := arena.AsUnsupported(err); u != nil {
		skipped = append(skipped, Case{Name: service.name, Verdict: Skip, Text: u.Reason})
	} else if err != nil {
		return nil, nil, err
	} else {
		service.to.Target = netip.AddrPortFrom(through.Target, port)
		ways = append(ways, service)
	}
	return ways, append(skipped, Case{Name: arena.PathSameNode, Verdict: Skip, Text: "pods of one node don't cross the underlay"}), nil
}

// sighting is what one node has seen.
type sighting struct {
	node string
	agent.Sniffed
}

// marked are the packets with the marker over the protocol, by what they are.
// What the sniffer had no name for counts as both protocols.
func (s sighting) marked(marker, protocol string) map[string]int {
	found := map[string]int{}
	for label, count := range s.Marked[marker] {
		if inner := innermost(label); inner == protocol || inner != "tcp" && inner != "udp" {
			found[label] = int(count)
		}
	}
	return found
}

// ciphered are the packets of a cipher that came after an earlier look, by
// what they are, in words.
func (s sighting) ciphered(before sighting) map[string]int {
	found := map[string]int{}
	for label, count := range s.Protocols {
		inner := innermost(label)
		if n := int(count - before.Protocols[label]); ciphers[inner] != "" && n > 0 {
			found[strings.TrimSuffix(label, inner)+ciphers[inner]] = n
		}
	}
	return found
}

// innermost is what the tunnels of a label carry.
func innermost(label string) string { return label[strings.LastIndexByte(label, '/')+1:] }

func sum(counts map[string]int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}

type watcher struct {
	node  string
	agent *agent.Client
}

type watchers []watcher

func (w watchers) look(ctx context.Context) ([]sighting, error) {
	var list []sighting
	for _, x := range w {
		seen, err := x.agent.Sniffed(ctx)
		if err != nil {
			return nil, err
		}
		list = append(list, sighting{x.node, seen})
	}
	return list, nil
}

func (w watchers) stop(ctx context.Context) error {
	var errs []error
	for _, x := range w {
		_, err := x.agent.StopSniffing(ctx)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// judgeWire says what became of a marker, against what was promised: none, or
// a kind of encryption. word is the environment's.
func judgeWire(path, protocol, promised string, before, after []sighting) (c Case, word string) {
	c = Case{Name: path + "-" + protocol, Found: unseen, Values: map[string]int{}}
	inClear, enciphered, watched := map[string]int{}, map[string]int{}, 0
	for i, seen := range after {
		packets, marked, ciphered := int(seen.Packets-before[i].Packets), seen.marked(path, protocol), seen.ciphered(before[i])
		watched += packets
		c.Values[seen.node+"_packets"], c.Values[seen.node+"_marked"], c.Values[seen.node+"_ciphered"] = packets, sum(marked), sum(ciphered)
		maps.Copy(inClear, marked)
		maps.Copy(enciphered, ciphered)
	}
	switch {
	case len(inClear) > 0:
		c.Found = plain
		c.Text = fmt.Sprintf("the marker was seen in %s (%s)", counts(c.Values, after, "_marked"), strings.Join(slices.Sorted(maps.Keys(inClear)), ", "))
	case len(enciphered) > 0:
		c.Found = encrypted
		c.Text = fmt.Sprintf("the marker was in none of %d packets; %s were %s", watched, counts(c.Values, after, "_ciphered"), strings.Join(slices.Sorted(maps.Keys(enciphered)), ", "))
	default:
		c.Text = fmt.Sprintf("the marker was in none of %d packets, and none was of a cipher that cnibench knows", watched)
	}
	switch {
	case promised == "none" && c.Found == plain:
		return pass(c), plain
	case promised != "none" && c.Found == encrypted:
		return pass(c), string(Pass)
	case promised != "none" && c.Found == plain:
		c.Verdict = Fail
		c.Text += "; the contender's file promises " + promised
		c.Next = "Don't send secrets over it; see whether encryption is switched on on every node."
		return c, string(Fail)
	}
	c.Verdict = Fail
	c.Text += "; the contender's file says " + promised
	c.Next = "Find out which way the packets take: capture on every interface of a node."
	return c, unseen
}

func pass(c Case) Case {
	c.Verdict = Pass
	return c
}

// counts is "4 packets at node1 and 4 at node2".
func counts(values map[string]int, seen []sighting, suffix string) string {
	var words []string
	for i, s := range seen {
		n := values[s.node+suffix]
		what := strconv.Itoa(n)
		if i == 0 {
			what = unit.Plural(n, "packet")
		}
		words = append(words, what+" at "+s.node)
	}
	return strings.Join(words, " and ")
}
