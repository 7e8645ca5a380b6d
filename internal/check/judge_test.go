package check

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/agent"
)

func TestJudgeSizes(t *testing.T) {
	for name, tt := range map[string]struct {
		sizes packetSizes
		want  string
	}{
		"fits": {packetSizes{underlay: 1500, overhead: 50, pod: 1450, sent: 1450, toServer: 1450, toClient: 1450}, "pass fits: packets of 1450 bytes cross whole: the underlay's 1500 less 50 of encapsulation"},
		"one way": {packetSizes{underlay: 1500, unknown: true, pod: 1500, sent: 1500, toServer: 1400, toClient: 1500, ends: [2]string{"the client on a", "the server on b"}},
			"fail exceeds: pods send packets of up to 1500 bytes, but those of more than 1400 don't cross to another node whole from the client on a to the server on b, while 1500 do the other way (the underlay takes 1500)"},
		"unknown encapsulation": {packetSizes{underlay: 1500, unknown: true, pod: 1450, sent: 1450, toServer: 1450, toClient: 1450},
			"pass fits: packets of 1450 bytes cross whole: the underlay takes 1500, and nobody knows what this network's encapsulation takes"},
		"a route's MTU":   {packetSizes{underlay: 1500, overhead: 50, pod: 1500, sent: 1450, toServer: 1450, toClient: 1450}, "pass fits: packets of 1450 bytes cross whole: the underlay's 1500 less 50 of encapsulation; the interface shows an MTU of 1500, the route allows less"},
		"wastes":          {packetSizes{underlay: 9000, overhead: 50, pod: 1450, sent: 1450, toServer: 1450, toClient: 1450}, "fail wastes: pods send packets of 1450 bytes at most and could send 8950: the underlay's 9000 less 50 of encapsulation"},
		"wastes a little": {packetSizes{underlay: 1500, overhead: 50, pod: 1430, sent: 1430, toServer: 1430, toClient: 1430}, "pass wastes a little: pods send packets of 1430 bytes at most and could send 1450: the underlay's 1500 less 50 of encapsulation"},
		"more than asked": {packetSizes{underlay: 1500, overhead: 80, pod: 1440, sent: 1440, toServer: 1440, toClient: 1440}, "pass fits: packets of 1440 bytes cross whole, more than the 1420 that the contender's file gives: the underlay's 1500 less 80 of encapsulation"},
		"blocked":         {packetSizes{underlay: 1500, pod: 1500, sent: 1500, toServer: 1500, ends: [2]string{"a", "b"}}, "fail blocked: not even a packet of 576 bytes crosses to another node whole from b to a, while 1500 do the other way"},
		"no TCP":          {packetSizes{underlay: 1500, pod: 1500, toServer: 1450, toClient: 1450}, "fail exceeds: pods send packets of up to 1500 bytes, but those of more than 1450 don't cross to another node whole, either way (the underlay's 1500)"},
		"unwatched":       {packetSizes{underlay: 1500, pod: 1500, sent: 1500, toServer: 1500, toClient: 1500, unseen: "not permitted"}, "pass fits: packets of 1500 bytes cross whole: the underlay's 1500; whether the underlay cuts packets up was not watched: not permitted"},
	} {
		t.Run(name, func(t *testing.T) {
			c := tt.sizes.judge()
			knownFacts(t, []Case{c})
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
	sight := func(large map[string]uint64, marked map[string]uint64) []sighting {
		s := agent.Sniffed{Large: large, Protocols: map[string]uint64{"esp": 90, "wireguard": 90}, Marked: map[string]map[string]uint64{"pod": marked}}
		for _, n := range large {
			s.Packets += n
		}
		return []sighting{{"node1", s}, {"node2", s}}
	}
	for name, tt := range map[string]struct {
		promised string
		after    []sighting
		want     string
	}{
		"plain":             {"none", sight(map[string]uint64{"vxlan/tcp": 9}, map[string]uint64{"vxlan/tcp": 2}), "plain pass plain: the marker was seen in 2 packets at node1 and 2 at node2 (vxlan/tcp)"},
		"encrypted":         {"wireguard", sight(map[string]uint64{"wireguard": 5, "udp": 4}, nil), "pass pass encrypted: the marker was in none of 18 packets; 5 packets at node1 and 5 at node2 were WireGuard, and long enough for it"},
		"ESP in a tunnel":   {"ipsec", sight(map[string]uint64{"vxlan/esp": 5, "udp": 4}, nil), "pass pass encrypted: the marker was in none of 18 packets; 5 packets at node1 and 5 at node2 were vxlan/ESP, and long enough for it"},
		"plain beside ESP":  {"ipsec", sight(map[string]uint64{"esp": 9, "tcp": 4}, map[string]uint64{"tcp": 1}), "fail fail plain: the marker was seen in 1 packet at node1 and 1 at node2 (tcp); the contender's file promises ipsec"},
		"the other one":     {"ipsec", sight(map[string]uint64{"esp": 9, "udp": 4}, map[string]uint64{"udp": 1}), "pass pass encrypted: the marker was in none of 26 packets; 9 packets at node1 and 9 at node2 were ESP, and long enough for it"},
		"without a name":    {"ipsec", sight(map[string]uint64{"esp": 9, "other": 4}, map[string]uint64{"other": 1}), "fail fail plain: the marker was seen in 1 packet at node1 and 1 at node2 (other); the contender's file promises ipsec"},
		"gone elsewhere":    {"wireguard", sight(map[string]uint64{"udp": 4}, nil), "unseen fail unseen: the marker was in none of 8 packets, and none that could hold it was of a cipher that cnibench knows; the contender's file says wireguard"},
		"encrypted, unsaid": {"none", sight(map[string]uint64{"esp": 9, "udp": 4}, nil), "unseen fail encrypted: the marker was in none of 26 packets; 9 packets at node1 and 9 at node2 were ESP, and long enough for it; the contender's file says none"},
	} {
		t.Run(name, func(t *testing.T) {
			c := judgeWire("pod", "tcp", tt.promised, tt.after)
			knownFacts(t, []Case{c})
			if diff := cmp.Diff(tt.want, strings.Join([]string{wireWord(c), string(c.Verdict), c.Found}, " ")+": "+c.Text); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Where nobody promised anything, a plain network passes, and one that leaves a path out of
// its encryption does not: the path is named, and those that are encrypted.
func TestJudgeTogether(t *testing.T) {
	for name, tt := range map[string]struct {
		found []string
		want  string
	}{
		"one direction":  {[]string{Plain + encrypted, Plain}, "fail fail; 4 packets beside it were of a cipher, and long enough for it: a part is encrypted, perhaps one direction, plain pass"},
		"plain":          {[]string{Plain, Plain}, "plain pass, plain pass"},
		"encrypted":      {[]string{encrypted, encrypted}, "pass pass, pass pass"},
		"skips Services": {[]string{encrypted, Plain}, "pass pass, fail fail; encrypted were pod-tcp"},
	} {
		var cases []Case
		var got []string
		for i, found := range tt.found {
			seen := []sighting{{"node1", agent.Sniffed{Marked: map[string]map[string]uint64{"pod": {}, "service": {}}, Large: map[string]uint64{}}}}
			path := []string{"pod", "service"}[i]
			if strings.Contains(found, Plain) {
				seen[0].Marked[path]["tcp"] = 2
			}
			if strings.Contains(found, encrypted) {
				seen[0].Large["wireguard"] = 4
			}
			c := judgeWire(path, "tcp", "", seen)
			c.Text = ""
			cases = append(cases, c)
		}
		judgeTogether(cases)
		for _, c := range cases {
			got = append(got, wireWord(c)+" "+string(c.Verdict)+c.Text)
			if (c.Verdict == Fail) != (c.Next != "") {
				t.Errorf("%s: next step %q of %s", name, c.Next, c.Verdict)
			}
		}
		if text := strings.Join(got, ", "); text != tt.want {
			t.Errorf("%s: %s, want %s", name, text, tt.want)
		}
	}
}

// What is seen of a path is what came while it was asked; and when packets
// were missed, it is asked once more.
func TestDuring(t *testing.T) {
	look := func(packets, dropped uint64) agent.Sniffed {
		marked := map[string]uint64{"esp": packets / 10} // seldom
		return agent.Sniffed{Packets: packets, Dropped: dropped, Large: map[string]uint64{"esp": packets, "ipip/esp": 7}, Marked: map[string]map[string]uint64{"pod": marked}}
	}
	for name, tt := range map[string]struct {
		looks []agent.Sniffed
		sent  int
		want  map[string]int // ciphered
		mark  int
		err   string
	}{
		"nothing new":  {[]agent.Sniffed{look(40, 0), look(40, 0)}, 1, map[string]int{}, 0, ""},
		"some":         {[]agent.Sniffed{look(40, 3), look(60, 3)}, 1, map[string]int{"ESP": 20}, 2, ""},
		"missed once":  {[]agent.Sniffed{look(40, 0), look(50, 1), look(60, 1)}, 2, map[string]int{"ESP": 20}, 2, ""},
		"missed twice": {[]agent.Sniffed{look(40, 0), look(50, 1), look(60, 3)}, 2, nil, 0, "node1: the sniffer missed 2 packets"},
	} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			w := watchers{{"node1", func(context.Context) (agent.Sniffed, error) {
				now := tt.looks[0]
				tt.looks = tt.looks[1:]
				return now, nil
			}}}
			seen, err := w.watch(t.Context(), func() error { sent++; return nil })
			if sent != tt.sent {
				t.Errorf("sent %d times, want %d", sent, tt.sent)
			}
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q in it", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, seen[0].countCiphered()); diff != "" {
				t.Error(diff)
			}
			if got := sum(seen[0].countMarked("pod", "udp")); got != tt.mark {
				t.Errorf("the marker was seen %d times, want %d", got, tt.mark)
			}
		})
	}
}

func caseOf(t *testing.T, r Result, name string) Case {
	t.Helper()
	for _, c := range r.Cases {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("%s has no case %s: %+v", r.Check, name, r.Cases)
	return Case{}
}
