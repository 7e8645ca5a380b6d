package check

import (
	"context"
	"errors"
	"fmt"
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
	device   string    // the client's node's interface on the underlay
	underlay int       // MTU of the nodes' interface
	overhead int       // of the encapsulation, as the contender's file has it
	unknown  bool      // nobody knows what the encapsulation takes: a cluster's own network
	pod      int       // MTU of the pods' interface, the smaller of both ends
	sent     int       // the packet that TCP begins with, the larger of both ways
	toServer int       // the largest packet that crosses whole from client to server; 0: not even minPacket
	toClient int       // the same from server to client
	ends     [2]string // what the client and the server are called, with their nodes
	unseen   string    // why nobody watched for fragments
	assumed  string    // why the underlay's MTU is only derived from the path's
}

func (z packetSizes) fits() int { return z.underlay - z.overhead }
func (z packetSizes) path() int { return min(z.toServer, z.toClient) }

func (m mtu) Run(ctx context.Context, s *Subject) (Result, error) {
	pair, err := s.Network.Pair(ctx, arena.PathPod)
	if err != nil {
		return Result{}, err
	}
	z := packetSizes{overhead: int(s.Contender.Datapath.Overhead), unknown: s.Contender.Datapath.Transport == ""}
	ends := [2]arena.Endpoint{pair.Client, pair.Server}
	var agents, nodes [2]*agent.Client
	for i, e := range ends {
		z.ends[i] = [2]string{"the client", "the server"}[i] + " on " + e.Node()
		if agents[i], err = s.Agent(ctx, e); err != nil {
			return Result{}, err
		}
		node, err := s.Node(e)
		if err != nil {
			return Result{}, err
		}
		if nodes[i], err = s.Agent(ctx, node); err != nil {
			return Result{}, err
		}
		under, err := s.underlay(ctx, node)
		if err != nil {
			return Result{}, err
		}
		hello, err := agents[i].Hello(ctx, e.Addr())
		if err != nil {
			return Result{}, err
		}
		if i == 0 {
			z.device, z.underlay, z.pod = under.Name, under.MTU, hello.MTU
		}
		z.underlay, z.pod = min(z.underlay, under.MTU), min(z.pod, hello.MTU)
	}
	res := Result{Check: "mtu", Contender: s.Contender.ID, UnderlayMTU: z.underlay}

	tcp, err := m.transfers(ctx, s, &z, ends, agents)
	if err != nil {
		return Result{}, err
	}
	if err := m.search(ctx, s, &z, ends, agents, nodes[0]); err != nil {
		return Result{}, err
	}
	if _, err := s.Network.Pair(ctx, arena.PathHost); arena.AsUnsupported(err) != nil { // what passes for a node is a pod
		res.UnderlayMTU, z.underlay = 0, z.path()+z.overhead
		z.assumed = arena.AsUnsupported(err).Reason
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

// search finds the largest packets that cross whole while the client's node
// watches its uplink: a tunnel can cut a packet up although its sender forbade
// it, and put it together again on the other side.
func (mtu) search(ctx context.Context, s *Subject, z *packetSizes, ends [2]arena.Endpoint, agents [2]*agent.Client, node *agent.Client) (err error) {
	watch := node
	if err := node.Sniff(ctx, agent.Sniff{Device: z.device}); err != nil {
		watch, z.unseen = nil, err.Error()
	} else {
		defer func() {
			_, stopErr := node.StopSniffing(ctx)
			err = errors.Join(err, stopErr)
		}()
	}
	for i, found := range []*int{&z.toServer, &z.toClient} {
		target, err := s.Echo(ctx, ends[1-i])
		if err != nil {
			return err
		}
		within := func(timeout time.Duration) func(int) (bool, error) {
			return func(size int) (bool, error) {
				return agents[i].Crosses(ctx, watch, agent.SizeProbe{Target: target, Size: size, Timeout: timeout})
			}
		}
		if *found, err = agent.LargestWhole(minPacket, z.pod, within(0), within(patience)); err != nil {
			return err
		}
	}
	return nil
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
		c.Verdict, c.Found = Fail, "exceeds"
		c.Text = fmt.Sprintf("pods send packets of up to %d bytes, but those of more than %d don't cross to another node whole%s (%s)", sent, z.path(), z.oneWay(), under)
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
