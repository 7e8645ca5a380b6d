package check

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
)

// mtu compares the pods' MTU with what the underlay and the encapsulation
// leave, and with what really crosses to another node in one piece.
type mtu struct{}

func (mtu) Info() Info {
	return Info{"mtu", "does a packet of the pods' MTU reach another node in one piece, and how large are TCP's segments?"}
}

const (
	// minPacket is what every IPv4 host takes (RFC 791).
	minPacket = 576
	// maxWaste is the share of the underlay's packet that may lie idle
	// beside the encapsulation; analysis draws the same line.
	maxWaste = 0.02
	// tcpHeaders are IPv4's and TCP's with timestamps, as analysis adds them
	// to a segment's payload.
	tcpHeaders = 20 + 32
	// patience is how long an answer may take on a busy emulated machine.
	patience = 2 * time.Second
)

// packetSizes are what the check found, bytes.
type packetSizes struct {
	underlay int       // MTU of the nodes' interface
	overhead int       // of the encapsulation, as the contender's file has it
	unknown  bool      // nobody knows what the encapsulation takes: a cluster's own network
	pod      int       // MTU of the pods' interface, the smaller of both ends
	sent     int       // the packet that TCP begins with, the larger of both ways
	toServer int       // the largest packet that crosses whole from client to server; 0: not even minPacket
	toClient int       // the same from server to client
	ends     [2]string // what the client and the server are called, with their nodes
	nodes    [2]string // theirs
	unseen   string    // why nobody watched for fragments
	assumed  string    // why the underlay's MTU is only derived from the path's

	// What becomes of packets of the size that TCP begins with, where those do not cross whole.
	large [2]agent.Crossing // there and back; the zero value: not asked
	// host is the largest packet of the nodes that crosses whole, where pods' do not; 0: not asked.
	host int
}

func (z packetSizes) fits() int { return z.underlay - z.overhead }
func (z packetSizes) path() int { return min(z.toServer, z.toClient) }

func (m mtu) Run(ctx context.Context, s *Subject) (_ Result, err error) {
	pair, err := s.Network.Pair(ctx, arena.PathPod)
	if err != nil {
		return Result{}, err
	}
	z := packetSizes{overhead: int(s.Contender.Datapath.Overhead), unknown: s.Contender.Datapath.Transport == ""}
	ends := [2]arena.Endpoint{pair.Client, pair.Server}
	var agents, nodes [2]*agent.Client
	var places [2]arena.Endpoint
	var devices [2]string
	for i, e := range ends {
		z.ends[i], z.nodes[i] = [2]string{"the client", "the server"}[i]+" on "+e.Node(), e.Node()
		if agents[i], err = s.Agent(ctx, e); err != nil {
			return Result{}, err
		}
		if places[i], err = s.Node(e); err != nil {
			return Result{}, err
		}
		if nodes[i], err = s.Agent(ctx, places[i]); err != nil {
			return Result{}, err
		}
		under, err := s.underlay(ctx, places[i])
		if err != nil {
			return Result{}, err
		}
		hello, err := agents[i].Hello(ctx, e.Addr())
		if err != nil {
			return Result{}, err
		}
		devices[i] = under.Name
		if i == 0 {
			z.underlay, z.pod = under.MTU, hello.MTU
		}
		z.underlay, z.pod = min(z.underlay, under.MTU), min(z.pod, hello.MTU)
	}
	res := Result{Check: "mtu", Contender: s.Contender.ID, UnderlayMTU: z.underlay}

	tcp, err := m.transfers(ctx, s, &z, ends, agents)
	if err != nil {
		return Result{}, err
	}
	watches, err := z.watch(ctx, nodes, devices)
	defer func() {
		for _, w := range watches {
			err = errors.Join(err, w.Close(ctx))
		}
	}()
	if err != nil {
		return Result{}, err
	}
	for i, found := range []*int{&z.toServer, &z.toClient} {
		target, err := s.Echo(ctx, ends[1-i])
		if err != nil {
			return Result{}, err
		}
		if *found, err = largestWhole(ctx, agents[i], watches, target, z.pod); err != nil {
			return Result{}, err
		}
		if z.sent > *found && *found > 0 {
			if z.large[i], err = fate(ctx, agents[i], watches, agent.SizeProbe{Target: target, Size: z.sent}); err != nil {
				return Result{}, err
			}
		}
	}
	_, hostErr := s.Network.Pair(ctx, arena.PathHost)
	if hostErr == nil && z.path() < z.sent {
		target, err := s.Echo(ctx, places[1])
		if err != nil {
			return Result{}, err
		}
		if z.host, err = largestWhole(ctx, nodes[0], watches, target, z.underlay); err != nil {
			return Result{}, err
		}
	}
	if arena.AsUnsupported(hostErr) != nil { // what passes for a node is a pod
		res.UnderlayMTU, z.underlay = 0, z.path()+z.overhead
		z.assumed = arena.AsUnsupported(hostErr).Reason
	}
	res.Cases = []Case{z.judge(), tcp}
	res.set(res.key("pod"), strconv.Itoa(z.pod))
	if z.path() > 0 {
		res.set(res.key("path"), strconv.Itoa(z.path()))
	} else {
		res.set(res.key("whole"), "fail: "+res.Cases[0].Text)
	}
	if z.sent > tcpHeaders {
		res.set("pod.mss."+s.Contender.ID, strconv.Itoa(z.sent-tcpHeaders))
	}
	if tcp.Verdict == Fail {
		res.set(res.key("tcp"), "fail: "+tcp.Text)
	}
	if size := res.Cases[0]; size.Found == fragmentsLost {
		res.set(res.key("fragments"), "fail: "+size.Text)
	}
	return res, nil
}

// transfers tells TCP's segments both ways. The handshakes go first: they tell
// what both sides would send before the path has taught them better.
func (mtu) transfers(ctx context.Context, s *Subject, z *packetSizes, ends [2]arena.Endpoint, agents [2]*agent.Client) (Case, error) {
	c := Case{Name: "tcp", Verdict: Pass, Found: "flows", Values: map[string]int{}}
	v := c.Values
	for _, bytes := range []int{1, 0} { // 0: the agent's default
		for i, side := range []string{"client", "server"} {
			target, err := s.Echo(ctx, ends[1-i])
			if err != nil {
				return c, err
			}
			if err := reach(ctx, agents[i], agent.Probe{Target: target}); err != nil {
				return c, err
			}
			seg, err := agents[i].Segments(ctx, agent.TCPProbe{Target: target, Bytes: bytes})
			if err != nil {
				return c, err
			}
			if bytes == 1 {
				z.sent = max(z.sent, seg.FirstPacket)
				v[side+"_first_mss"] = seg.FirstMSS
				continue
			}
			v[side+"_last_mss"], v[side+"_retransmits"] = seg.LastMSS, seg.Retransmits
			if seg.Kind != agent.OK {
				c.Verdict, c.Found = Fail, "stalls"
				c.Text = fmt.Sprintf("a transfer from the %s ended with %s (%s) after a connection that was made; ", side, seg.Kind, seg.Detail)
				c.Next = "Lower the pods' MTU to what crosses whole, or let ICMP \"fragmentation needed\" through."
			}
		}
	}
	c.Text += fmt.Sprintf("segments carry %d and %d bytes after the handshake, %d and %d after a transfer (client, server)",
		v["client_first_mss"], v["server_first_mss"], v["client_last_mss"], v["server_last_mss"])
	return c, nil
}

// watch has both nodes watch their uplinks for fragments: a tunnel can cut a packet up
// although its sender forbade it, and so can a hop on the way, and the other node puts it
// together again.
func (z *packetSizes) watch(ctx context.Context, nodes [2]*agent.Client, devices [2]string) (list []*agent.Watch, err error) {
	for i, node := range nodes {
		if i > 0 && node == nodes[0] {
			break
		}
		w, err := node.WatchFragments(ctx, devices[i])
		if err != nil {
			z.unseen = err.Error()
			return list, nil
		}
		list = append(list, w)
	}
	return list, nil
}

// largestWhole returns the size of the largest packet that crosses whole, most at most; 0: none.
func largestWhole(ctx context.Context, from *agent.Client, watches []*agent.Watch, target netip.AddrPort, most int) (int, error) {
	within := func(timeout time.Duration) func(int) (bool, error) {
		return func(size int) (bool, error) {
			x, err := from.Cross(ctx, watches, agent.SizeProbe{Target: target, Size: size, Timeout: timeout})
			return x.Whole(), err
		}
	}
	return agent.LargestWhole(minPacket, most, within(0), within(patience))
}

// fate returns what becomes of packets that do not cross whole. What is cut up is so twice:
// the first fragments may be another's.
func fate(ctx context.Context, from *agent.Client, watches []*agent.Watch, p agent.SizeProbe) (x agent.Crossing, err error) {
	for try := range 2 {
		now, err := from.Cross(ctx, watches, p)
		if err != nil {
			return x, err
		}
		if try > 0 {
			now.Cut = slices.DeleteFunc(now.Cut, func(at int) bool { return !slices.Contains(x.Cut, at) })
		}
		x = now
	}
	return x, nil
}

// The facts about packets that are larger than what crosses whole.
const (
	exceeding     = "exceeds"        // they do not arrive
	cutUp         = "cut up"         // in fragments, which arrive
	fragmentsLost = "fragments lost" // in fragments, which do not
)

// becomes says what becomes of packets that are too large for one way: there (0) or back.
func (z packetSizes) becomes(way int) (found, text string) {
	x := z.large[way]
	from, to := z.nodes[way], z.nodes[1-way]
	arrive, found := "they arrive", cutUp
	if x.Kind != agent.OK {
		arrive, found = "they are lost", fragmentsLost
	}
	switch {
	case x.Kind == "":
		return "", ""
	case slices.Contains(x.Cut, way):
		return found, fmt.Sprintf("%s cuts them up, and %s at %s", from, arrive, to)
	case len(x.Cut) > 0:
		return found, fmt.Sprintf("a hop between %s and %s cuts them up, and %s", from, to, arrive)
	case x.Kind == agent.TooBig:
		return exceeding, fmt.Sprintf("%s is told that they are too large for the way to %s", from, to)
	}
	return exceeding, fmt.Sprintf("they vanish between %s and %s, and nobody says so", from, to)
}

// tooLarge says what becomes of packets that are too large, the worst of both ways.
func (z packetSizes) tooLarge() (found, text string) {
	found = exceeding
	for way := range z.large {
		f, t := z.becomes(way)
		if t == "" {
			continue
		}
		if text == "" || f == fragmentsLost || f == exceeding && found == cutUp {
			found, text = f, t
		}
	}
	if text != "" {
		text = ": " + text
	}
	return found, text
}

// oneWay says which way large packets get lost, where it is one way only.
func (z packetSizes) oneWay() string {
	switch {
	case z.toServer < z.toClient:
		return fmt.Sprintf(" from %s to %s, while %d do the other way", z.ends[0], z.ends[1], z.toClient)
	case z.toClient < z.toServer:
		return fmt.Sprintf(" from %s to %s, while %d do the other way", z.ends[1], z.ends[0], z.toServer)
	}
	return ", either way"
}

// judge compares the sizes.
func (z packetSizes) judge() Case {
	c := Case{Name: "size", Verdict: Pass, Values: map[string]int{
		"pod_mtu": z.pod, "path_there": z.toServer, "path_back": z.toClient, "tcp_packet": z.sent, "overhead": z.overhead, "fits": z.fits(),
	}}
	sent := z.sent
	if sent == 0 {
		sent = z.pod
	}
	under := fmt.Sprintf("the underlay's %d", z.underlay)
	switch {
	case z.unknown:
		under = fmt.Sprintf("the underlay takes %d", z.underlay)
		delete(c.Values, "overhead")
		delete(c.Values, "fits")
	case z.overhead > 0:
		under += fmt.Sprintf(" less %d of encapsulation", z.overhead)
	}
	switch {
	case z.path() == 0:
		c.Verdict, c.Found = Fail, "blocked"
		c.Text = fmt.Sprintf("not even a packet of %d bytes crosses to another node whole%s", minPacket, z.oneWay())
		c.Next = "Look for a firewall that drops UDP with the don't-fragment bit, and at the MTU of every hop."
	case sent > z.path():
		found, becomes := z.tooLarge()
		c.Verdict, c.Found = Fail, found
		c.Text = fmt.Sprintf("pods send packets of up to %d bytes, but those of more than %d don't cross to another node whole%s (%s)%s", sent, z.path(), z.oneWay(), under, becomes)
		c.Next = fmt.Sprintf("Set the pods' MTU to %d.", z.path())
		if z.toServer != z.toClient {
			c.Next = "Look at rules and MTUs on that way: the other way lets larger packets through. Until then, set the pods' MTU to " + strconv.Itoa(z.path()) + "."
		}
	case z.unknown:
		c.Found = "fits"
		c.Text = fmt.Sprintf("packets of %d bytes cross whole: %s, and nobody knows what this network's encapsulation takes", sent, under)
	case float64(z.fits()-sent) > maxWaste*float64(z.underlay):
		c.Verdict, c.Found = Fail, "wastes"
		c.Text = fmt.Sprintf("pods send packets of %d bytes at most and could send %d: %s", sent, z.fits(), under)
		c.Next = fmt.Sprintf("Set the pods' MTU to %d.", z.fits())
	case sent < z.fits():
		c.Found = "wastes a little"
		c.Text = fmt.Sprintf("pods send packets of %d bytes at most and could send %d: %s", sent, z.fits(), under)
	case sent > z.fits():
		c.Found = "fits"
		c.Text = fmt.Sprintf("packets of %d bytes cross whole, more than the %d that the contender's file gives: %s", sent, z.fits(), under)
	default:
		c.Found = "fits"
		c.Text = fmt.Sprintf("packets of %d bytes cross whole: %s", sent, under)
	}
	if c.Found == fragmentsLost {
		c.Next += " Look for rules and firewalls that drop IP fragments on that way."
	}
	if z.host > 0 && c.Verdict == Fail {
		c.Values["path_host"] = z.host
		if z.host < z.underlay {
			c.Text += fmt.Sprintf("; the nodes' own packets of more than %d bytes don't cross whole either, and their interfaces show %d: the nodes' network is at fault, not the pods'", z.host, z.underlay)
			c.Next = fmt.Sprintf("Mend the network between the nodes, or set the nodes' MTU to %d. Until then, set the pods' MTU to %d.", z.host, z.path())
		} else {
			c.Text += fmt.Sprintf("; the nodes' own packets of %d bytes cross whole", z.host)
		}
	}
	if z.pod > sent && z.path() > 0 {
		c.Text += fmt.Sprintf("; the interface shows an MTU of %d, the route allows less", z.pod)
	}
	if z.assumed != "" {
		c.Text += "; the underlay's MTU is taken from that, for nobody may ask the nodes: " + z.assumed
	}
	if z.unseen != "" {
		c.Text += "; whether the underlay cuts packets up was not watched: " + z.unseen
	}
	return c
}
