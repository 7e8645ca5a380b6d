package strictyaml_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cnibench/cnibench/internal/strictyaml"
	"github.com/google/go-cmp/cmp"
)

type piece struct {
	Use    string         `yaml:"use"`
	Params map[string]any `yaml:"with,omitempty"`
}

type document struct {
	ID        string           `yaml:"id"`
	Transport *piece           `yaml:"transport,omitempty"`
	Extras    []piece          `yaml:"extras,omitempty"`
	Named     map[string]piece `yaml:"named,omitempty"`
	Overhead  float64          `yaml:"overhead"`
	Ports     uint8            `yaml:"ports"`
	IPv6      bool             `yaml:"ipv6"`
	Hidden    string           `yaml:"-"`
}

func TestDecode(t *testing.T) {
	var got document
	err := strictyaml.Decode("x.yaml", strings.NewReader(`# a comment
id: x
transport:
  use: vxlan
  with: {vni: 1, learning: false, device: flannel.1} # anything goes here
extras:
  - use: masquerade
overhead: 50
ipv6: true
`), &got)
	if err != nil {
		t.Fatal(err)
	}
	want := document{
		ID: "x", Overhead: 50, IPv6: true,
		Transport: &piece{Use: "vxlan", Params: map[string]any{"vni": uint64(1), "learning": false, "device": "flannel.1"}},
		Extras:    []piece{{Use: "masquerade"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeErrors(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"near key", "id: x\ntransprot:\n  use: y\n", `x.yaml:2: unknown key "transprot"; did you mean "transport"?`},
		{"nested key", "id: x\ntransport:\n  usse: y\n", `x.yaml:3: unknown key "usse"; did you mean "use"?`},
		{"key in a list", "extras:\n- use: a\n- uze: b\n", `x.yaml:3: unknown key "uze"; did you mean "use"?`},
		{"key in a map", "named:\n  a:\n    wiht: {}\n", `x.yaml:3: unknown key "wiht"; did you mean "with"?`},
		{"key in flow style", "transport: {use: a, wth: {}}\n", `x.yaml:1: unknown key "wth"; did you mean "with"?`},
		{"the nearest is of the same mapping", "transport:\n  overhead: 1\n", `x.yaml:2: unknown key "overhead"; there are: use, with`},
		{"far key", "zzzzzz: 1\n", `x.yaml:1: unknown key "zzzzzz"; there are: extras, id, ipv6, named, overhead, ports, transport`},
		{"hidden field", "hidden: 1\n", `x.yaml:1: unknown key "hidden"; there are: extras, id, ipv6, named, overhead, ports, transport`},
		{"duplicate key", "id: x\nid: y\n", `x.yaml:2: mapping key "id" already defined at [1:1]`},
		{"duplicate nested key", "transport:\n  use: x\n  use: y\n", `x.yaml:3: mapping key "use" already defined at [2:3]`},
		{"not a number", "id: x\noverhead: fifty\n", `x.yaml:2: "fifty" is not a number`},
		{"not a bool", "ipv6: maybe\n", `x.yaml:1: "maybe" is not true or false`},
		{"not text", "id: [a]\n", `x.yaml:1: a list is not text`},
		{"not a list", "extras: a\n", `x.yaml:1: "a" is not a list`},
		{"not a mapping", "transport: vxlan\n", `x.yaml:1: "vxlan" is not a mapping`},
		{"overflow", "ports: 300\n", `x.yaml:1: 300 is too large or too small`},
		{"a list as document", "- a\n", `x.yaml:1: a list is not a mapping`},
		{"syntax", "id: [\n", `x.yaml:1: sequence end token ']' not found`},
		{"empty", "", `x.yaml: empty`},
		{"only a comment", "# hello\n", `x.yaml: empty`},
		{"two documents", "id: x\n---\nid: y\n", `x.yaml:3: a second document; one file holds one`},
		{"too large", strings.Repeat("#", 300<<10), `x.yaml: larger than 256 KiB; a data file holds a page or two`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got document
			err := strictyaml.Decode("x.yaml", strings.NewReader(tt.in), &got)
			var located *strictyaml.Error
			if !errors.As(err, &located) {
				t.Fatalf("got %v (%T), want *strictyaml.Error", err, err)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeReaderFails(t *testing.T) {
	err := strictyaml.Decode("x.yaml", iotest.ErrReader(io.ErrUnexpectedEOF), &document{})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want the reader's own error", err)
	}
}

func TestDecodeNeedsAStruct(t *testing.T) {
	for _, into := range []any{nil, document{}, new(int)} {
		if err := strictyaml.Decode("x.yaml", strings.NewReader("id: x"), into); err == nil {
			t.Errorf("decoding into %T succeeded", into)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("id: x\ntransport: {use: vxlan, with: {vni: 1}}\n")
	f.Add("id: &a x\nextras: [{use: *a}]\n")
	f.Add("id: |\n  text\n---\n")
	f.Add("transprot: 1\n")
	f.Fuzz(func(t *testing.T, in string) {
		var got document
		err := strictyaml.Decode("x.yaml", strings.NewReader(in), &got)
		var located *strictyaml.Error
		if err != nil && !errors.As(err, &located) {
			t.Errorf("%v (%T) names no file", err, err)
		}
	})
}

// A reference to what stands elsewhere makes much of a short file, and hides what a
// data file says.
func TestReferences(t *testing.T) {
	laugh := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'l'; c++ {
		laugh += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+", ", 9) + "*" + string(c-1) + "]\n"
	}
	for name, text := range map[string]string{
		"billion laughs": laugh,
		"an anchor":      "a: &x [y]\n",
		"a merge key":    "a: {<<: {b: [c]}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			var into anything
			err := strictyaml.Decode("x.yaml", strings.NewReader(text), &into)
			if err == nil || !strings.Contains(err.Error(), "references") {
				t.Errorf("error %.200v", err)
			}
		})
	}
}

// Tags say what a value is, which a data file leaves to its reader; the library fails on
// some of them.
func TestTags(t *testing.T) {
	for _, text := range []string{"a: !!str 1\n", "a: !0\n0000000\n  -0\n", "a: [!x y]\n"} {
		var into anything
		err := strictyaml.Decode("x.yaml", strings.NewReader(text), &into)
		if err == nil || !strings.Contains(err.Error(), "x.yaml:1: tags (!) are not read") {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

type anything struct {
	A any `yaml:"a"`
}
