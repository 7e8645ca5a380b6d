package check

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/agent"
)

func TestLargest(t *testing.T) {
	for _, tt := range []struct{ most, path, want int }{
		{1500, 1500, 1500}, {1500, 9000, 1500}, {1500, 1450, 1450}, {9000, 577, 577}, {9000, 576, 576}, {9000, 8999, 8999}, {1500, 575, 0},
	} {
		asked := 0
		got, err := largest(leastPacket, tt.most, func(size int) (bool, error) { asked++; return size <= tt.path, nil })
		if err != nil || got != tt.want || asked > 16 {
			t.Errorf("up to %d of %d: %d with %d questions, %v, want %d", tt.path, tt.most, got, asked, err, tt.want)
		}
	}
	broken := errors.New("broken")
	for n := 1; n < 5; n++ {
		asked := 0
		_, err := largest(leastPacket, 9000, func(size int) (bool, error) {
			if asked++; asked == n {
				return false, broken
			}
			return size <= 1450, nil
		})
		if !errors.Is(err, broken) {
			t.Errorf("question %d fails: %v", n, err)
		}
	}
}

func TestJudgeSizes(t *testing.T) {
	for name, tt := range map[string]struct {
		sizes packetSizes
		want  string
	}{
		"fits":            {packetSizes{underlay: 1500, overhead: 50, pod: 1450, sent: 1450, there: 1450, back: 1450}, "pass fits: packets of 1450 bytes cross whole: the underlay's 1500 less 50 of encapsulation"},
		"exceeds one way": {packetSizes{underlay: 1500, pod: 1500, sent: 1500, there: 1500, back: 1400}, "fail exceeds: pods send packets of up to 1500 bytes, but those of more than 1400 don't cross to another node whole (the underlay's 1500)"},
		"a route's MTU":   {packetSizes{underlay: 1500, overhead: 50, pod: 1500, sent: 1450, there: 1450, back: 1450}, "pass fits: packets of 1450 bytes cross whole: the underlay's 1500 less 50 of encapsulation; the interface shows an MTU of 1500, the route allows less"},
		"wastes":          {packetSizes{underlay: 9000, overhead: 50, pod: 1450, sent: 1450, there: 1450, back: 1450}, "fail wastes: pods send packets of 1450 bytes at most and could send 8950: the underlay's 9000 less 50 of encapsulation"},
		"wastes a little": {packetSizes{underlay: 1500, overhead: 50, pod: 1430, sent: 1430, there: 1430, back: 1430}, "pass wastes a little: pods send packets of 1430 bytes at most and could send 1450: the underlay's 1500 less 50 of encapsulation"},
		"more than asked": {packetSizes{underlay: 1500, overhead: 80, pod: 1440, sent: 1440, there: 1440, back: 1440}, "pass fits: packets of 1440 bytes cross whole, more than the 1420 that the contender's file gives: the underlay's 1500 less 80 of encapsulation"},
		"blocked":         {packetSizes{underlay: 1500, pod: 1500, sent: 1500, there: 1500}, "fail blocked: not even a packet of 576 bytes crosses to another node whole"},
		"no TCP":          {packetSizes{underlay: 1500, pod: 1500, there: 1450, back: 1450}, "fail exceeds: pods send packets of up to 1500 bytes, but those of more than 1450 don't cross to another node whole (the underlay's 1500)"},
		"unwatched":       {packetSizes{underlay: 1500, pod: 1500, sent: 1500, there: 1500, back: 1500, unseen: "not permitted"}, "pass fits: packets of 1500 bytes cross whole: the underlay's 1500; whether the underlay cuts packets up was not watched: not permitted"},
	} {
		t.Run(name, func(t *testing.T) {
			c := tt.sizes.judge()
			if diff := cmp.Diff(tt.want, string(c.Verdict)+" "+c.Found+": "+c.Text); diff != "" {
				t.Error(diff)
			}
			if (c.Verdict == Fail) != (c.Next != "") {
				t.Errorf("next step %q of %s", c.Next, c.Verdict)
			}
		})
	}
}

func TestJudgeWire(t *testing.T) {
	sight := func(protocols map[string]uint64, marked map[string]uint64) []sighting {
		s := agent.Sniffed{Protocols: protocols, Marked: map[string]map[string]uint64{"pod": marked}}
		for _, n := range protocols {
			s.Packets += n
		}
		return []sighting{{"node1", s}, {"node2", s}}
	}
	none := sight(map[string]uint64{"udp": 4}, nil)
	for name, tt := range map[string]struct {
		promised string
		after    []sighting
		want     string
	}{
		"plain":             {"none", sight(map[string]uint64{"vxlan/tcp": 9}, map[string]uint64{"vxlan/tcp": 2}), "plain pass plain: the marker was seen in 2 packets at node1 and 2 at node2 (vxlan/tcp)"},
		"encrypted":         {"wireguard", sight(map[string]uint64{"wireguard": 9, "udp": 4}, nil), "pass pass encrypted: the marker was in none of 18 packets; 9 packets at node1 and 9 at node2 were WireGuard"},
		"ESP in a tunnel":   {"ipsec", sight(map[string]uint64{"vxlan/esp": 9, "udp": 4}, nil), "pass pass encrypted: the marker was in none of 18 packets; 9 packets at node1 and 9 at node2 were vxlan/ESP"},
		"plain beside ESP":  {"ipsec", sight(map[string]uint64{"esp": 9, "tcp": 4}, map[string]uint64{"tcp": 1}), "fail fail plain: the marker was seen in 1 packet at node1 and 1 at node2 (tcp); the contender's file promises ipsec"},
		"the other one":     {"ipsec", sight(map[string]uint64{"esp": 9, "udp": 4}, map[string]uint64{"udp": 1}), "pass pass encrypted: the marker was in none of 18 packets; 9 packets at node1 and 9 at node2 were ESP"},
		"without a name":    {"ipsec", sight(map[string]uint64{"esp": 9, "other": 4}, map[string]uint64{"other": 1}), "fail fail plain: the marker was seen in 1 packet at node1 and 1 at node2 (other); the contender's file promises ipsec"},
		"gone elsewhere":    {"wireguard", none, "unseen fail unseen: the marker was in none of 0 packets, and none was of a cipher that cnibench knows; the contender's file says wireguard"},
		"encrypted, unsaid": {"none", sight(map[string]uint64{"esp": 9, "udp": 4}, nil), "unseen fail encrypted: the marker was in none of 18 packets; 9 packets at node1 and 9 at node2 were ESP; the contender's file says none"},
	} {
		t.Run(name, func(t *testing.T) {
			c, word := judgeWire("pod", "tcp", tt.promised, none, tt.after)
			if diff := cmp.Diff(tt.want, strings.Join([]string{word, string(c.Verdict), c.Found}, " ")+": "+c.Text); diff != "" {
				t.Error(diff)
			}
		})
	}
}
