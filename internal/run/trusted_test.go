package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/cli/exit"
)

// A run directory that somebody else made, and this user copied, names an image
// and a configuration that would run as root: they must be given again, or have
// been run by this user before.
func TestTrusts(t *testing.T) {
	image, conf := map[string]string{"image": "registry/x:1"}, map[string]string{cniTextKey: "{}"}
	for name, c := range map[string]struct {
		before   map[string]string // what a run of this user had
		settings map[string]string
		given    map[string]bool
		image    string // of --image
		want     string // in the error
	}{
		"another's image":           {nil, image, nil, "", "names the image registry/x:1, which no run of yours has used"},
		"image given again":         {nil, image, map[string]bool{"image": true}, "registry/x:1", ""},
		"another image given":       {nil, image, map[string]bool{"image": true}, "registry/y:1", "a resumed run keeps its plan"},
		"one's own image":           {image, image, nil, "", ""},
		"another's configuration":   {image, conf, nil, "", "has a CNI configuration that no run of yours has used"},
		"configuration given again": {nil, conf, map[string]bool{"cni-conf": true}, "", ""},
		"one's own configuration":   {conf, conf, nil, "", ""},
		"a text as an image":        {map[string]string{"image": "{}"}, conf, nil, "", "has a CNI configuration"},
		"nothing to execute":        {nil, map[string]string{"mtu": "1500"}, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			if err := remember(dir, c.before); err != nil {
				t.Fatal(err)
			}
			f := &Request{Resume: "dir", Given: c.given, Cluster: Cluster{Image: c.image}}
			err := f.trusts(dir, c.settings)
			if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || exit.Code(err) != exit.WrongUsage) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// A damaged file of digests trusts nothing, and is written anew.
func TestTrustedDamaged(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, trustedFile), []byte("[\"x"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{"image": "x"}
	f := &Request{}
	if f.trusts(dir, settings) == nil {
		t.Error("trusted without a digest")
	}
	if err := remember(dir, settings); err != nil {
		t.Fatal(err)
	}
	if err := f.trusts(dir, settings); err != nil {
		t.Error(err)
	}
}

// What the first version noted is known by this one.
func TestTrustedSpecimen(t *testing.T) {
	f := &Request{Resume: "dir"}
	for flag, settings := range map[string]map[string]string{"image": {"image": "registry/x:1"}, "configuration": {cniTextKey: "{}"}} {
		if err := f.trusts("testdata/executed-1", settings); err != nil {
			t.Errorf("%s: %v", flag, err)
		}
		if err := f.trusts(t.TempDir(), settings); err == nil {
			t.Errorf("%s: trusted without a note", flag)
		}
	}
}
