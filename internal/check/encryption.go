package check

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/unit"
)

// encryption sends marked payloads on every path while both nodes watch their
// interface on the underlay: a marker that is seen there was sent in clear.
// Watchers that see nothing prove nothing, so they first have to see a marker that
// goes from node to node past the pod network. "Encrypted" needs encrypted packets
// on the underlay that could hold the marker and were sent with it: neither
// packets of another path, nor handshakes or keepalives.
type encryption struct{}

func (encryption) Info() Info {
	return Info{"encryption", "can a marked payload that a pod sends be read between the nodes?"}
}

// The facts that the check can find.
const (
	Plain     = "plain"     // the marker was seen on the underlay
	encrypted = "encrypted" // it was not, and packets of a cipher were
	unseen    = "unseen"    // neither
)

// control is the marker of the counter-proof.
const control = "control"

// markedSize is a payload that no path cuts in two.
const markedSize = 256

// protocols are asked one after the other.
var protocols = []string{"tcp", "udp"}

// ciphers are the labels of encrypted packets, with the names that people know.
var ciphers = map[string]string{"esp": "ESP", "wireguard": "WireGuard", "sleeve": "Weave's sleeve"}

// way is one path that a marker takes, in both directions.
type way struct {
	name string // of the path
	from *agent.Client
	to   agent.Probe
	// answerer sends a marker in the other direction too; nil: only replies go there.
	answerer *agent.Client
	answer   agent.Probe
}

// send sends the marker over one protocol, in both directions if there is an
// answerer.
func (x way) send(ctx context.Context, protocol string) error {
	x.to.Protocol, x.answer.Protocol = protocol, protocol
	if err := reach(ctx, x.from, x.to); err != nil || x.answerer == nil {
		return err
	}
	return reach(ctx, x.answerer, x.answer)
}

func (e encryption) Run(ctx context.Context, s *Subject) (res Result, err error) {
	res = Result{Check: "encryption", Contender: s.Contender.ID}
	hostPair, err := s.Network.Pair(ctx, arena.PathHost)
	if u := arena.AsUnsupported(err); u != nil {
		res.note(Case{Name: "underlay", Verdict: Skip, Text: "nobody can watch the nodes: " + u.Reason, Next: u.Remedy})
		return res, nil
	}
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
		under, err := s.underlay(ctx, node)
		if err != nil {
			return res, err
		}
		err = a.Sniff(ctx, agent.Sniff{Device: under.Name, Markers: markers, LargeFrom: markedSize})
		if errors.Is(err, agent.ErrMayNotSniff) {
			res.note(Case{Name: "underlay", Verdict: Skip, Text: "nobody may watch the nodes' packets: " + err.Error(), Next: "Allow a privileged pod on each node, --privileged, if this cluster is yours."})
			return res, nil
		}
		if err != nil {
			return res, fmt.Errorf("watch the underlay at %s: %w", node.Name(), err)
		}
		defer func() {
			_, stopErr := a.StopSniffing(ctx)
			err = errors.Join(err, stopErr)
		}()
		w = append(w, watcher{node.Name(), a.ReadSniffer})
	}

	probe := func(e arena.Endpoint, marker string) (agent.Probe, error) {
		at, err := s.Echo(ctx, e)
		return agent.Probe{Target: at, Size: markedSize, Payload: markers[marker]}, err
	}
	to, err := probe(hostPair.Server, control)
	if err != nil {
		return res, err
	}
	from, err := s.Agent(ctx, hostPair.Client)
	if err != nil {
		return res, err
	}
	plainly, err := w.watch(ctx, func() error { return reach(ctx, from, to) })
	if err != nil {
		return res, fmt.Errorf("counter-proof: %w", err)
	}
	for _, protocol := range protocols {
		for _, seen := range plainly {
			if len(seen.countMarked(control, protocol)) == 0 {
				return res, fmt.Errorf("counter-proof: %s did not see a marker that went plain from node to node over %s: nothing that it does not see is proven to be encrypted", seen.node, protocol)
			}
		}
	}

	ways, skipped, err := e.ways(ctx, s, probe)
	if err != nil {
		return res, err
	}
	promised := s.Contender.Features.Encryption
	if len(s.Contender.Features.Architectures) == 0 {
		promised = "" // no file of the catalogue has described it
	}
	var broken error // a path that is not there leaves the others to be judged
	for _, x := range ways {
		for _, protocol := range protocols {
			seen, err := w.watch(ctx, func() error { return x.send(ctx, protocol) })
			if err != nil {
				broken = errors.Join(broken, fmt.Errorf("path %s: %w", x.name, err))
				continue
			}
			res.Cases = append(res.Cases, judgeWire(x.name, protocol, promised, seen))
		}
	}
	if promised == "" {
		judgeTogether(res.Cases)
	}
	for _, c := range res.Cases {
		res.set(res.key(c.Name), wireWord(c)+": "+c.Text)
	}
	for _, c := range skipped {
		res.Cases = append(res.Cases, c)
		res.set(res.key(c.Name), "skip: "+c.Text)
	}
	return res, broken
}

// ways returns the paths that cross the underlay, and the cases of those that
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
	if pod.answerer, err = s.Agent(ctx, pair.Server); err != nil {
		return nil, nil, err
	}
	if pod.to, err = probe(pair.Server, pod.name); err != nil {
		return nil, nil, err
	}
	if pod.answer, err = probe(pair.Client, pod.name); err != nil {
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
		service.to.Target = through.At(port)
		ways = append(ways, service)
	}
	return ways, append(skipped, Case{Name: arena.PathSameNode, Verdict: Skip, Text: "pods of one node don't cross the underlay"}), nil
}

// sighting is what one node has seen.
type sighting struct {
	node string
	agent.Sniffed
}

// countMarked returns the packets with the marker over the protocol, by what they are.
// What the sniffer had no name for counts as both protocols.
func (s sighting) countMarked(marker, protocol string) map[string]int {
	found := map[string]int{}
	for label, count := range s.Marked[marker] {
		if inner := innermost(label); inner == protocol || inner != "tcp" && inner != "udp" {
			found[label] = int(count)
		}
	}
	return found
}

// countCiphered returns the packets of a cipher that are long enough to hold a marked
// payload, by what they are, in words.
func (s sighting) countCiphered() map[string]int {
	found := map[string]int{}
	for label, count := range s.Large {
		if inner := innermost(label); ciphers[inner] != "" {
			found[strings.TrimSuffix(label, inner)+ciphers[inner]] = int(count)
		}
	}
	return found
}

// since returns what came after an earlier look.
func (s sighting) since(before sighting) sighting {
	marked := map[string]map[string]uint64{}
	for name, by := range s.Marked {
		marked[name] = subtractCounts(by, before.Marked[name])
	}
	return sighting{s.node, agent.Sniffed{
		Packets: s.Packets - before.Packets, Large: subtractCounts(s.Large, before.Large), Marked: marked,
	}}
}

// subtractCounts is by how much the counts have grown, of those that have.
func subtractCounts(now, before map[string]uint64) map[string]uint64 {
	grown := map[string]uint64{}
	for label, n := range now {
		if n > before[label] {
			grown[label] = n - before[label]
		}
	}
	return grown
}

// innermost returns what the tunnels of a label carry.
func innermost(label string) string { return label[strings.LastIndexByte(label, '/')+1:] }

func sum(counts map[string]int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}

type watcher struct {
	node string
	seen func(context.Context) (agent.Sniffed, error) // since it began
}

type watchers []watcher

// watch returns what the watchers see while send runs. If a watcher missed
// packets, send runs once more: the marker may have been in the missed packets.
func (w watchers) watch(ctx context.Context, send func() error) ([]sighting, error) {
	before, err := w.look(ctx)
	if err != nil {
		return nil, err
	}
	var missed error
	for last := before; ; {
		if err := send(); err != nil {
			return nil, err
		}
		after, err := w.look(ctx)
		if err != nil {
			return nil, err
		}
		retried := missed != nil
		missed = nil
		for i, seen := range after {
			if err := seen.CheckDrops(last[i].Sniffed); err != nil {
				missed = errors.Join(missed, fmt.Errorf("%s: %w", seen.node, err))
			}
		}
		switch {
		case missed == nil:
			for i := range after {
				after[i] = after[i].since(before[i])
			}
			return after, nil
		case retried:
			return nil, missed
		}
		last = after
	}
}

func (w watchers) look(ctx context.Context) ([]sighting, error) {
	var list []sighting
	for _, x := range w {
		seen, err := x.seen(ctx)
		if err != nil {
			return nil, err
		}
		list = append(list, sighting{x.node, seen})
	}
	return list, nil
}

// judgeWire says what became of a marker, against what was promised: none, a
// kind of encryption, or "" where nobody has said.
func judgeWire(path, protocol, promised string, sightings []sighting) Case {
	c := Case{Name: path + "-" + protocol, Found: unseen, Values: map[string]int{}}
	inClear, enciphered, watched := map[string]int{}, map[string]int{}, 0
	for _, seen := range sightings {
		packets, marked, ciphered := int(seen.Packets), seen.countMarked(path, protocol), seen.countCiphered()
		watched += packets
		c.Values[seen.node+"_packets"], c.Values[seen.node+"_marked"], c.Values[seen.node+"_ciphered"] = packets, sum(marked), sum(ciphered)
		maps.Copy(inClear, marked)
		maps.Copy(enciphered, ciphered)
	}
	switch {
	case len(inClear) > 0:
		c.Found = Plain
		c.Text = fmt.Sprintf("the marker was seen in %s (%s)", counts(c.Values, sightings, "_marked"), strings.Join(slices.Sorted(maps.Keys(inClear)), ", "))
	case len(enciphered) > 0:
		c.Found = encrypted
		c.Text = fmt.Sprintf("the marker was in none of %d packets; %s were %s, and long enough for it", watched, counts(c.Values, sightings, "_ciphered"), strings.Join(slices.Sorted(maps.Keys(enciphered)), ", "))
	default:
		c.Text = fmt.Sprintf("the marker was in none of %d packets, and none that could hold it was of a cipher that cnibench knows", watched)
	}
	switch {
	case (promised == "none" || promised == "") && c.Found == Plain:
		return pass(c)
	case promised != "none" && c.Found == encrypted:
		return pass(c)
	case promised == "": // of a network that nobody has described
		c.Verdict, c.Next = Fail, lookElsewhere
		return c
	case promised != "none" && c.Found == Plain:
		c.Verdict = Fail
		c.Text += "; the contender's file promises " + promised
		c.Next = "Don't send secrets over it; see whether encryption is switched on on every node."
		return c
	}
	c.Verdict = Fail
	c.Text += "; the contender's file says " + promised
	c.Next = lookElsewhere
	return c
}

// wireWord is the environment's word for a judged path.
func wireWord(c Case) string {
	switch {
	case c.Found != Plain && c.Verdict == Fail:
		return unseen
	case c.Found == Plain && c.Verdict == Pass:
		return Plain
	}
	return string(c.Verdict)
}

// judgeTogether fails the plain paths of a network that encrypts others, or of which both
// nodes saw a cipher's packets as well: though nobody promised encryption, a part without it
// is taken for a mistake.
func judgeTogether(cases []Case) {
	var safe []string
	for _, c := range cases {
		if c.Found == encrypted {
			safe = append(safe, c.Name)
		}
	}
	for i := range cases {
		c := &cases[i]
		if c.Found != Plain {
			continue
		}
		switch ciphered, everywhere := c.countCiphered(); {
		case len(safe) > 0:
			c.Text += "; encrypted were " + strings.Join(safe, ", ")
		case everywhere: // a request encrypted and its reply in clear, say
			c.Text += fmt.Sprintf("; %d packets beside it were of a cipher, and long enough for it: a part is encrypted, perhaps one direction", ciphered)
		default:
			continue
		}
		c.Verdict = Fail
		c.Next = "Don't send secrets over it; see on both nodes which route its packets take (ip rule, ip route), and what marks or rewrites them before the cipher."
	}
}

// countCiphered returns how many long packets of a cipher the nodes saw, and whether each saw some.
func (c *Case) countCiphered() (packets int, everywhere bool) {
	everywhere = true
	for name, n := range c.Values {
		if strings.HasSuffix(name, "_ciphered") {
			packets, everywhere = packets+n, everywhere && n > 0
		}
	}
	return packets, everywhere && packets > 0
}

const lookElsewhere = "Find out which way the packets take: capture on every interface of a node."

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
