package check

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/arenatest"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/contender"
)

// TestMain starts the test program again inside the lab's container, as the
// command line does.
func TestMain(m *testing.M) {
	if arenatest.MainAgent() {
		return
	}
	if !lab.Contained() {
		code, err := lab.Contain(context.Background(), func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) })
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
		CPUs: lab.DefaultPlacement(lab.CPUs()), CNIPath: lab.DefaultCNIPath, Custom: custom,
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func find(t *testing.T, id string) *contender.Contender {
	t.Helper()
	list, err := contender.Load(contenders.FS)
	if err != nil {
		t.Fatal(err)
	}
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
	for _, c := range results[0].Cases {
		t.Logf("%s %s %s: %s", c.Name, c.Verdict, c.Found, c.Text)
	}
	return results[0]
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

func TestMTU(t *testing.T) {
	for _, tt := range []struct {
		contender string
		underlay  int
		path      string
	}{
		{"host", 1500, "1500"},
		{"flannel-vxlan", 1500, "1450"},
		{"flannel-vxlan", 9000, "8950"},
		{"calico-noencap", 9000, "9000"},
		{"macvlan", 1500, "1500"},
		{"flannel-aws-vpc", 1500, "1500"},
		{"flannel-wireguard", 1500, "1420"},
		{"calico-ipip", 1500, "1480"},
	} {
		t.Run(fmt.Sprintf("%s on %d", tt.contender, tt.underlay), func(t *testing.T) {
			c := find(t, tt.contender)
			r := checked(t, newLab(t, tt.underlay, nil), c, mtu{})
			if size := caseOf(t, r, "size"); r.Verdict() != Pass || size.Found != "fits" || r.UnderlayMTU != tt.underlay {
				t.Errorf("%+v", r)
			}
			for _, key := range []string{"pod", "path"} {
				if got := r.Environment["check.mtu."+tt.contender+"."+key]; got != tt.path {
					t.Errorf("%s is %q, want %s", key, got, tt.path)
				}
			}
		})
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

func TestEncryption(t *testing.T) {
	for contender, cipher := range map[string]string{
		"host": "", "flannel-vxlan": "", "calico-noencap": "", "macvlan": "", "flannel-aws-vpc": "",
		"flannel-ipip": "", "flannel-udp": "",
		"flannel-wireguard": "WireGuard", "calico-wg": "WireGuard", "cilium-ipsec": "ESP", "weave-encrypted": "ESP",
	} {
		t.Run(contender, func(t *testing.T) {
			c := find(t, contender)
			if c.Lab.None != "" {
				t.Skip(c.Lab.None + " " + c.Lab.Remedy)
			}
			r := checked(t, newLab(t, 1500, nil), c, encryption{})
			found, word := "plain", "plain: "
			if cipher != "" {
				found, word = "encrypted", "pass: "
			}
			for _, name := range []string{"pod-tcp", "pod-udp"} {
				c := caseOf(t, r, name)
				if c.Verdict != Pass || c.Found != found || !strings.Contains(c.Text, cipher) {
					t.Errorf("%+v", c)
				}
				if got := r.Environment["check.encryption."+contender+"."+name]; !strings.HasPrefix(got, word) {
					t.Errorf("%s: %q", name, got)
				}
			}
			if c := caseOf(t, r, "same-node"); c.Verdict != Skip {
				t.Errorf("%+v", c)
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
