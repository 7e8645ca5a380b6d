package diagnose_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnibench/cnibench/internal/diagnose"
)

// A paste of any case of the corpus gives the same causes again, at hidden names.
func TestPasteReplays(t *testing.T) {
	for name, e := range files(t) {
		t.Run(name, func(t *testing.T) {
			snap := &e.Case.Snapshots[0]
			snap.Resolver = &diagnose.Resolver{Servers: []string{"203.0.113.77"}, Search: []string{"secret.example.com"}}
			paste, err := diagnose.Paste(&e.Case, "cnibench test")
			if err != nil {
				t.Fatal(err)
			}
			c, ok, err := diagnose.ReadPaste([]byte(paste))
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			want, got := diagnose.Diagnose(&e.Case), diagnose.Diagnose(c)
			short := func(v *diagnose.Verdict) (list []string) {
				for _, x := range v.Causes {
					list = append(list, x.ID+" "+string(x.State)+" "+x.Device)
				}
				return append(list, v.Verdict)
			}
			if diff := cmp.Diff(short(want), short(got), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			all, err := jsonText(c)
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"node-1", "shop/cart", "203.0.113.77", "secret.example.com", "default-deny"} {
				if strings.Contains(paste, secret) || strings.Contains(all, secret) {
					t.Errorf("the paste has %s", secret)
				}
			}
			if len(paste) > 64000 {
				t.Errorf("%d bytes are too many for an issue", len(paste))
			}
		})
	}
}

// IPv6 addresses are hidden wherever they are, and those that tell nothing are not.
func TestPasteHidesIPv6(t *testing.T) {
	for _, e := range files(t) {
		snap := &e.Case.Snapshots[0]
		snap.Resolver = &diagnose.Resolver{Servers: []string{"2a00:1450:4001:81b::200e", "fd00:10:96::a"}}
		snap.Routes = append(snap.Routes, diagnose.Route{To: "2a00:1450:4001::/48", Via: "2a00:1450:4001:81b::200e", Device: "eth0"}, diagnose.Route{To: "::/0", Via: "fe80::1", Device: "eth0"})
		paste, err := diagnose.Paste(&e.Case, "cnibench test")
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := diagnose.ReadPaste([]byte(paste))
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, hidden := range []string{"2a00", "81b", "200e"} {
			if strings.Contains(string(text), hidden) {
				t.Errorf("%s is in the paste", hidden)
			}
		}
		snap = &c.Snapshots[0]
		if got := snap.Resolver.Servers; len(got) != 2 || got[1] != "fd00:10:96::a" {
			t.Errorf("servers %v", got)
		}
		n := len(snap.Routes)
		if snap.Routes[n-2].Via != snap.Resolver.Servers[0] || snap.Routes[n-1].To != "::/0" || snap.Routes[n-1].Via != "fe80::1" {
			t.Errorf("routes %v", snap.Routes[n-2:])
		}
		return // what else a case holds changes nothing
	}
}

func TestReadPasteWrong(t *testing.T) {
	if _, ok, _ := diagnose.ReadPaste([]byte("hello")); ok {
		t.Error("a text without a case is no paste")
	}
	for _, text := range []string{"cnibench-case:!", "cnibench-case:aGVsbG8=", "cnibench-case:"} {
		if _, ok, err := diagnose.ReadPaste([]byte(text)); !ok || err == nil {
			t.Errorf("%s: %v %v", text, ok, err)
		}
	}
}

// The short form is sound where the verdict is, and not where the plant is.
func TestDoctor(t *testing.T) {
	bad := map[string]string{"loss/plant.json": "loss", "mtu-exceeds/plant.json": "size", "offload-off/plant.json": "speed", "dns-slow/plant.json": "DNS"}
	for name, e := range files(t) {
		var broken []string
		for _, l := range diagnose.Doctor(&e.Case) {
			if !l.OK {
				broken = append(broken, l.What)
			}
			if l.Text == "" {
				t.Errorf("%s: %s says nothing", name, l.What)
			}
		}
		if want := bad[name]; want != "" && !strings.Contains(strings.Join(broken, " "), want) {
			t.Errorf("%s: want %s, found %v", name, want, broken)
		}
		if e.Twin && e.Expected.ID == "usual" && diagnose.Diagnose(&e.Case).Verdict == diagnose.Usual && len(broken) > 0 {
			t.Errorf("%s is sound, and %v is not", name, broken)
		}
	}
}

func FuzzReadPaste(f *testing.F) {
	f.Add("cnibench-case:H4sIAAAAAAAA/6tWSkksSQQA")
	f.Add("x")
	f.Fuzz(func(t *testing.T, text string) {
		c, ok, err := diagnose.ReadPaste([]byte(text))
		if ok && err == nil {
			diagnose.Diagnose(c)
			diagnose.Doctor(c)
		}
	})
}

// FuzzCase: whatever a saved case holds, it is judged.
func FuzzCase(f *testing.F) {
	f.Add(`{"schema":"cnibench/diagnose-case/1","arena":"kube","ends":["node1","node2"],"pods":["node1-pod1","node2-pod1"],"probes":[{"from":"node1","to":"node2","slices":[1e9,null,-1]}],"snapshots":[{"endpoint":"node1","node":"node1"}]}`)
	f.Add(`{"ends":[],"pods":["x"],"snapshots":[{},{"endpoint":"x","cpu_limit":1e308}],"unseen":[{"id":"offload-off"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var c diagnose.Case
		if json.Unmarshal([]byte(text), &c) == nil {
			diagnose.Diagnose(&c)
			diagnose.Doctor(&c)
		}
	})
}
