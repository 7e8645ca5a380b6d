package check

//make:alone 60

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/testutil/arenatest"
)

// TestMain starts the test program again inside the lab's container, as the
// command line does.
func TestMain(m *testing.M) {
	if arenatest.MainAgent() {
		return
	}
	if slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-test.fuzz") }) {
		os.Exit(m.Run()) // its workers have pipes that the container lacks; fuzz targets need none
	}
	if !lab.Contained() {
		code, err := lab.Contain(context.Background(), os.Args[1:])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}
	if err := lab.Enter(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func newLab(t *testing.T, mtu int, custom *lab.CustomAttach) arena.Arena {
	t.Helper()
	a, err := lab.New(lab.Options{
		Nodes: 2, Underlay: lab.UnderlayAuto, MTU: mtu, Congestion: lab.CongestionAuto,
		CPUs: lab.DefaultPlacement(lab.CPUs()), Custom: custom,
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func catalogue(t *testing.T) []*contender.Contender {
	t.Helper()
	list, err := contender.Load(contenders.FS)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// inLab returns the contenders that have a lab form.
func inLab(t *testing.T) []*contender.Contender {
	t.Helper()
	return slices.DeleteFunc(catalogue(t), func(c *contender.Contender) bool { return c.Lab.None != "" })
}

func find(t *testing.T, id string) *contender.Contender {
	t.Helper()
	list := catalogue(t)
	c, err := contender.Find(list, id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checked runs one check on the contender. One that this kernel lacks is
// skipped; the microVM of `cnibench vm` has it.
func checked(t *testing.T, a arena.Arena, c *contender.Contender, check Check) Result {
	t.Helper()
	if err := a.Supports(t.Context(), c); err != nil {
		t.Skipf("%v; build the test with go test -c and run it with cnibench vm -- ./check.test -test.run %s", err, t.Name())
	}
	r := &Runner{Arena: a, Exe: os.Args[0], Progress: func(string) {}}
	results, err := r.Run(t.Context(), c, a.Variant(c), []Check{check})
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Error != "" {
		t.Fatal(results[0].Error)
	}
	knownFacts(t, results[0].Cases)
	for _, c := range results[0].Cases {
		t.Logf("%s %s %s: %s", c.Name, c.Verdict, c.Found, c.Text)
	}
	return results[0]
}

// Of every contender of the lab, what crosses whole is the underlay's MTU less
// what its file says of the encapsulation; pods whose MTU is another are found.
func TestMTU(t *testing.T) {
	for _, c := range inLab(t) {
		t.Run(c.ID, func(t *testing.T) {
			r := checked(t, newLab(t, 1500, nil), c, mtu{})
			verdict, found, path := Pass, "fits", 1500-int(c.Datapath.Overhead)
			pod := path
			switch {
			case c.Datapath.PodMTU > 0:
				verdict, found, path, pod = Fail, "wastes", int(c.Datapath.PodMTU), int(c.Datapath.PodMTU)
			case c.Datapath.UnderlayPodMTU:
				verdict, found, pod = Fail, "exceeds", 1500
			}
			if size := caseOf(t, r, "size"); r.Verdict() != verdict || size.Found != found || r.UnderlayMTU != 1500 {
				t.Errorf("%+v", r)
			}
			for key, want := range map[string]int{"pod": pod, "path": path} {
				if got := r.Environment["check.mtu."+c.ID+"."+key]; got != strconv.Itoa(want) {
					t.Errorf("%s is %q, want %d", key, got, want)
				}
			}
		})
	}
}

func TestJumboMTU(t *testing.T) {
	for id, want := range map[string]string{"host": "9000", "flannel-vxlan": "8950"} {
		r := checked(t, newLab(t, 9000, nil), find(t, id), mtu{})
		if got := r.Environment["check.mtu."+id+".path"]; r.Verdict() != Pass || got != want {
			t.Errorf("%s: %q, want %s", id, got, want)
		}
	}
}

// An MTU that somebody set wrong on purpose is found, and named.
func TestWrongMTU(t *testing.T) {
	for name, tt := range map[string]struct {
		mtu       int
		transport string
		underlay  int
		found     string
		path      string
		next      string
	}{
		"too large":       {1500, "vxlan", 1500, "exceeds", "1450", "Set the pods' MTU to 1450."},
		"far too large":   {9000, "routes", 1500, "exceeds", "1500", "Set the pods' MTU to 1500."},
		"too small":       {1400, "routes", 1500, "wastes", "1400", "Set the pods' MTU to 1500."},
		"not jumbo":       {1450, "vxlan", 9000, "wastes", "1450", "Set the pods' MTU to 8950."},
		"a little small":  {1440, "vxlan", 1500, "wastes a little", "1440", ""},
		"as it should be": {1450, "vxlan", 1500, "fits", "1450", ""},
	} {
		t.Run(name, func(t *testing.T) {
			conf := fmt.Sprintf(`{"cniVersion":"1.0.0","name":"wrong","type":"bridge","bridge":"cni0","mtu":%d,"isDefaultGateway":true,
				"ipam":{"type":"host-local","ranges":[[{"subnet":"usePodCidr"}]]}}`, tt.mtu)
			custom, err := lab.NewCustom("wrong.conf", []byte(conf), tt.transport)
			if err != nil {
				t.Fatal(err)
			}
			r := checked(t, newLab(t, tt.underlay, custom), custom.Contender(), mtu{})
			size := caseOf(t, r, "size")
			if size.Found != tt.found || size.Next != tt.next || r.Environment["check.mtu.custom.path"] != tt.path {
				t.Errorf("found %q, next %q, path %q", size.Found, size.Next, r.Environment["check.mtu.custom.path"])
			}
			if wrong := tt.next != ""; wrong != (r.Verdict() == Fail) {
				t.Errorf("verdict %s", r.Verdict())
			}
		})
	}
}

// Every contender of the lab is as its file says: plain, or encrypted by what
// it names.
func TestEncryption(t *testing.T) {
	for _, c := range inLab(t) {
		t.Run(c.ID, func(t *testing.T) {
			r := checked(t, newLab(t, 1500, nil), c, encryption{})
			found, word := "plain", "plain: "
			cipher, promised := map[string]string{"wireguard": "WireGuard", "ipsec": "ESP", "nacl": "sleeve"}[c.Features.Encryption]
			if promised {
				found, word = "encrypted", "pass: "
			}
			names := []string{"pod-tcp", "pod-udp"}
			if c.Lab.Service != nil {
				names = append(names, "service-tcp", "service-udp")
			}
			for _, name := range names {
				got := caseOf(t, r, name)
				if got.Verdict != Pass || got.Found != found || !strings.Contains(got.Text, cipher) {
					t.Errorf("%+v", got)
				}
				if got := r.Environment["check.encryption."+c.ID+"."+name]; !strings.HasPrefix(got, word) {
					t.Errorf("%s: %q", name, got)
				}
			}
			if got := caseOf(t, r, "same-node"); got.Verdict != Skip {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A product that promises encryption and sends in clear is found out, and so
// is one whose bytes take another way than its file says.
func TestBrokenPromise(t *testing.T) {
	c := *find(t, "flannel-vxlan")
	c.Features.Encryption = "wireguard"
	r := checked(t, newLab(t, 1500, nil), &c, encryption{})
	pod := caseOf(t, r, "pod-udp")
	if pod.Verdict != Fail || pod.Found != "plain" || !strings.HasPrefix(r.Environment["check.encryption.flannel-vxlan.pod-udp"], "fail: the marker was seen in ") {
		t.Errorf("%+v, %v", pod, r.Environment)
	}
}
