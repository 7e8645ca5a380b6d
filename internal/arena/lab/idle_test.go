//go:build linux

package lab

import (
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// Contenders that stand idle don't disturb the host network, and none of its packets reach
// them. The host exchanges requests and responses alone and with the others standing, in
// pairs whose order a coin decides. Where others do no harm, either of a pair is the slower
// one with the same chance, whatever the machine does: all ten pairs slower by more than a
// tenth come in at most one test of 1,024. What the kernel still does for namespaces that
// are gone slows the host alone, which lets the test pass. What it does for those that have
// come slows the host beside them, on a busy machine for longer than it settles: so the median
// of batches over more than a second counts.
func TestIdleContendersDoNotDisturb(t *testing.T) {
	needs.Slow(t, "times exchanges beside idle contenders")
	const (
		pairs   = 10
		batches = 15
		trips   = 100 // of a batch
		margin  = 1.1
		settle  = 500 * time.Millisecond // what the kernel still does when namespaces have come or gone
		apart   = 100 * time.Millisecond
	)
	a, err := New(options(2, 1500))
	if err != nil {
		t.Fatal(err)
	}
	up := func(id string) *labNetwork {
		c, err := contender.Find(catalogue(t), id)
		if err != nil {
			t.Fatal(err)
		}
		n, err := a.Up(t.Context(), c, a.Variant(c))
		if err != nil {
			t.Fatal(err)
		}
		return n.(*labNetwork)
	}
	down := func(n *labNetwork) {
		if err := n.Down(t.Context()); err != nil {
			t.Error(err)
		}
	}
	host := up("host")
	defer down(host)
	exchange := echoOver(t, host)
	var others []*labNetwork
	defer func() {
		for _, n := range others {
			down(n)
		}
	}()
	var strays uint64 // packets that idle contenders received during exchanges
	timed := func(together bool) time.Duration {
		switch {
		case together && others == nil:
			for _, id := range everyKernel {
				if id != "host" {
					others = append(others, up(id))
				}
			}
		case !together:
			for _, n := range others {
				down(n)
			}
			others = nil
		}
		time.Sleep(settle)
		before := received(t, others)
		var took []time.Duration
		for range batches {
			time.Sleep(apart)
			exchange(trips / 10) // caches and the CPU's frequency
			begin := time.Now()
			exchange(trips)
			took = append(took, time.Since(begin))
		}
		strays += received(t, others) - before
		slices.Sort(took)
		return took[batches/2]
	}
	slower := 0
	for range pairs {
		first := rand.IntN(2) == 0
		took := map[bool]time.Duration{}
		for _, together := range []bool{first, !first} {
			took[together] = timed(together)
		}
		t.Logf("%d exchanges: %v alone, %v with %d others", trips, took[false], took[true], len(everyKernel)-1)
		if float64(took[true]) > margin*float64(took[false]) {
			slower++
		}
	}
	if slower == pairs {
		t.Errorf("the host was slower by more than a tenth with others standing, in each of %d pairs", pairs)
	}
	if strays >= batches*trips {
		t.Errorf("idle contenders received %d packets while the host sent %d", strays, pairs*batches*trips)
	}
}

// echoOver returns a function that exchanges so many single bytes between the nodes.
func echoOver(t *testing.T, n *labNetwork) (exchange func(int)) {
	t.Helper()
	pair, err := n.Pair(t.Context(), arena.PathHost)
	if err != nil {
		t.Fatal(err)
	}
	var listener net.Listener
	var conn net.Conn
	if err := pair.Server.(*endpoint).box.Do(func() (err error) {
		listener, err = net.Listen("tcp", net.JoinHostPort(pair.Target.String(), "0"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() { // ends with the client's connection
		if served, err := listener.Accept(); err == nil {
			_, _ = io.Copy(served, struct{ io.Reader }{served})
			served.Close()
		}
	}()
	if err := pair.Client.(*endpoint).box.Do(func() (err error) {
		conn, err = net.Dial("tcp", listener.Addr().String())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return func(count int) {
		b := []byte{0}
		for range count {
			if _, err := conn.Write(b); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(conn, b); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// received is how many packets have come in on all nodes' uplinks.
func received(t *testing.T, list []*labNetwork) (packets uint64) {
	t.Helper()
	for _, n := range list {
		for _, node := range n.nodes {
			h, err := node.box.Netlink()
			if err != nil {
				t.Fatal(err)
			}
			link, err := h.LinkByName(n.Uplink())
			h.Close()
			if err != nil {
				t.Fatal(err)
			}
			packets += link.Attrs().Statistics.RxPackets
		}
	}
	return packets
}
