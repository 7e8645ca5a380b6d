package contender_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/strictyaml"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/google/go-cmp/cmp"
)

// valid is the smallest good file of a contender with a lab form.
const valid = `id: x
product: X
summary: a bridge and VXLAN
features:
  policy: {ingress: false, egress: false, l7: false}
  encryption: none
  architectures: [amd64]
  status: active
datapath:
  attach: bridge
  transport: vxlan
  services: kube-proxy
  encapsulation: VXLAN
  overhead: 50
  overhead-source: RFC 7348
  mtu: auto
  mtu-source: its page
lab:
  attach: {use: bridge, with: {name: cni0, hairpin: true}}
  transport: {use: vxlan, with: {vni: 1}}
  own: [the bridge plugin]
`

func TestRead(t *testing.T) {
	got, err := contender.Read("contenders/x.yaml", strings.NewReader(valid))
	if err != nil {
		t.Fatal(err)
	}
	want := &contender.Contender{
		ID: "x", Product: "X", Summary: "a bridge and VXLAN",
		Features: contender.Features{Encryption: "none", Architectures: []string{"amd64"}, Status: "active"},
		Datapath: contender.Datapath{
			Attach: "bridge", Transport: "vxlan", Services: "kube-proxy",
			Encapsulation: "VXLAN", Overhead: 50, Source: "RFC 7348", MTU: "auto", MTUSource: "its page",
		},
		Lab: contender.Lab{
			Attach:    &contender.Piece{Use: "bridge", Params: map[string]any{"name": "cni0", "hairpin": true}},
			Transport: &contender.Piece{Use: "vxlan", Params: map[string]any{"vni": uint64(1)}},
			Own:       []string{"the bridge plugin"},
		},
	}
	want.SHA256 = fmt.Sprintf("%x", sha256.Sum256([]byte(valid)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadErrors(t *testing.T) {
	const lab = "  attach: {use: bridge, with: {name: cni0, hairpin: true}}\n  transport: {use: vxlan, with: {vni: 1}}\n  own: [the bridge plugin]\n"
	tests := []struct{ name, old, new, want string }{
		{"unknown key", "  transport: vxlan", "  transprot: vxlan", `contenders/x.yaml:11: unknown key "transprot"; did you mean "transport"?`},
		{"other id", "id: x", "id: y", `contenders/x.yaml: id is y, but the file is named x`},
		{"no id", "id: x\n", "", "contenders/x.yaml: id is , but the file is named x\ncontenders/x.yaml: id: use lower-case letters, digits and single hyphens"},
		{"no product", "product: X\n", "", `contenders/x.yaml: product is missing`},
		{"no summary", "summary: a bridge and VXLAN\n", "", `contenders/x.yaml: summary is missing`},
		{"homepage", "product: X", "product: X\nhomepage: example.org", `contenders/x.yaml: homepage: want an https address`},
		{"study", "product: X", "product: X\nstudies: [\"2017\"]", `contenders/x.yaml: unknown study "2017"; did you mean "2016"?`},
		{"encryption", "encryption: none", "encryption: wiregard", `contenders/x.yaml: unknown features.encryption "wiregard"; did you mean "wireguard"?`},
		{"no encryption", "  encryption: none\n", "", `contenders/x.yaml: features.encryption is missing`},
		{"status", "status: active", "status: actve", `contenders/x.yaml: unknown features.status "actve"; did you mean "active"?`},
		{"retired without reason", "status: active", "status: retired", `contenders/x.yaml: features.retired: say why it is retired`},
		{"reason but active", "status: active", "status: active\n  retired: old", `contenders/x.yaml: features.retired gives a reason, but the status is active`},
		{"no architecture", "architectures: [amd64]", "architectures: []", `contenders/x.yaml: features.architectures is missing`},
		{"architecture", "[amd64]", "[amd46]", `contenders/x.yaml: unknown architecture "amd46"; did you mean "amd64"?`},
		{"attach", "attach: bridge\n", "attach: brige\n", `contenders/x.yaml: unknown datapath.attach "brige"; did you mean "bridge"?`},
		{"overhead without source", "  overhead-source: RFC 7348\n", "", `contenders/x.yaml: datapath.overhead-source: say where the overhead's figure comes from`},
		{"overhead of nothing", "  encapsulation: VXLAN\n", "", `contenders/x.yaml: datapath.encapsulation: say what takes the overhead`},
		{"no mtu", "  mtu: auto\n", "", `contenders/x.yaml: datapath.mtu is missing`},
		{"mtu without source", "  mtu-source: its page\n", "", `contenders/x.yaml: datapath.mtu-source: say how it is known who finds the MTU of pods`},
		{"negative overhead", "overhead: 50", "overhead: -1", `contenders/x.yaml: datapath.overhead: a size cannot be negative`},
		{"overhead in words", "overhead: 50", "overhead: fifty", `contenders/x.yaml:14: "fifty" is not a number`},
		{"underlay", "lab:\n", "requires: {underlay: swich}\nlab:\n", `contenders/x.yaml: unknown requires.underlay "swich"; did you mean "switch"?`},
		{"pieces and none", "lab:\n", "lab:\n  none: no reason\n", `contenders/x.yaml: lab: it has pieces and lab.none; keep one`},
		{"neither pieces nor none", "lab:\n" + lab, "lab: {}\n", `contenders/x.yaml: lab: it has neither lab.attach nor the reason lab.none`},
		{"none without remedy", "lab:\n" + lab, "lab: {none: not written}\n", `contenders/x.yaml: lab.remedy: say what the user can do instead`},
		{"remedy without none", "lab:\n", "lab:\n  remedy: run y\n", `contenders/x.yaml: lab.remedy belongs to lab.none`},
		{"pieces of nothing", "  attach: bridge\n", "  attach: none\n", `contenders/x.yaml: lab: it joins pods, but datapath.attach is none`},
		{"piece without use", "{use: bridge, with", "{with", `contenders/x.yaml: lab: a piece without use`},
		{"nothing of the product", "  own: [the bridge plugin]\n", "", `contenders/x.yaml: lab.own, lab.reproduced: say what of the product is in it`},
		{"empty kube", "lab:\n", "kube: {}\nlab:\n", `contenders/x.yaml: kube: it has neither kube.steps nor the reason kube.none` + "\n" + `contenders/x.yaml: kube.checked is missing`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := strings.Replace(valid, tt.old, tt.new, 1)
			if in == valid {
				t.Fatalf("%q is not in the valid file", tt.old)
			}
			_, err := contender.Read("contenders/x.yaml", strings.NewReader(in))
			if err == nil {
				t.Fatal("no error")
			}
			var located *strictyaml.Error
			if !errors.As(err, &located) {
				t.Errorf("%T is no *strictyaml.Error", err)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	b := strings.Replace(valid, "id: x", "id: b", 1)
	a := strings.Replace(valid, "id: x", "id: a", 1)
	all, err := contender.Load(fstest.MapFS{"b.yaml": {Data: []byte(b)}, "a.yaml": {Data: []byte(a)}, "README": {}})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].ID != "a" || all[1].ID != "b" {
		t.Errorf("got %v, want a and b", all)
	}
	_, err = contender.Load(fstest.MapFS{"a.yaml": {Data: []byte(b)}})
	if want := "contenders/a.yaml: id is b, but the file is named a"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestFind(t *testing.T) {
	all := []*contender.Contender{{ID: "host"}, {ID: "flannel-vxlan"}}
	c, err := contender.Find(all, "flannel-vxlan")
	if err != nil || c.ID != "flannel-vxlan" {
		t.Errorf("got %v, %v", c, err)
	}
	_, err = contender.Find(all, "flanel-vxlan")
	var unknown *text.UnknownError
	if !errors.As(err, &unknown) {
		t.Fatalf("got %v, want a *text.UnknownError", err)
	}
	if want := `unknown contender "flanel-vxlan"; did you mean "flannel-vxlan"?`; err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(valid)
	f.Add("id: x\nlab: {none: a, remedy: b}\n")
	f.Add("features:\n  retired: x\nlab:\n  extras: [{}]\n")
	f.Fuzz(func(t *testing.T, in string) {
		c, err := contender.Read("contenders/x.yaml", strings.NewReader(in))
		var located *strictyaml.Error
		switch {
		case err == nil && c.ID != "x":
			t.Errorf("read a contender with id %q from x.yaml", c.ID)
		case err != nil && !errors.As(err, &located):
			t.Errorf("%v (%T) names no file", err, err)
		}
	})
}
