package text

import (
	"errors"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"run", "report", "flannel-vxlan", "flannel-host-gw"}
	for given, want := range map[string]string{
		"rnu": "run", "repotr": "report", "flanel-vxlan": "flannel-vxlan", "host-gw": "flannel-host-gw",
		"xyz": "", "q": "", "": "", "rum": "run", "k8s": "",
	} {
		if got := Nearest(given, names); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

// A product's name, or one with a typing mistake, gives all of the product.
func TestFamily(t *testing.T) {
	names := []string{"flannel-vxlan", "calico", "flannel-host-gw", "calico-wg", "host"}
	for given, want := range map[string]int{"flannel": 2, "flanel": 2, "calcio": 0, "hots": 0, "xyz": 0} {
		if got := family(given, names); len(got) != want {
			t.Errorf("%q: %v", given, got)
		}
	}
	if got := Nearest("k8s", []string{"lab", "kube"}); got != "kube" {
		t.Error(got)
	}
	if got := Nearest("pdf", []string{"text", "md", "csv"}); got != "" {
		t.Error(got)
	}
}

func TestUnknown(t *testing.T) {
	err := Unknown("suite", "quik", []string{"throughput", "quick"})
	var e *UnknownError
	if !errors.As(err, &e) || err.Error() != `unknown suite "quik"; did you mean "quick"?` {
		t.Error(err)
	}
	if err := Unknown("suite", "zzz", []string{"b", "a"}); err.Error() != `unknown suite "zzz"; there are: a, b` {
		t.Error(err)
	}
}

func TestFind(t *testing.T) {
	list := []struct{ name string }{{"quick"}, {"micro"}}
	nameOf := func(x struct{ name string }) string { return x.name }
	if x, err := Find("suite", "micro", list, nameOf); err != nil || x.name != "micro" {
		t.Error(x, err)
	}
	_, err := Find("suite", "mirco", list, nameOf)
	var e *UnknownError
	if !errors.As(err, &e) || err.Error() != `unknown suite "mirco"; did you mean "micro"?` {
		t.Error(err)
	}
}

func TestShorten(t *testing.T) {
	things := []string{"a", "b", "c", "d"}
	for max, want := range map[int]string{2: "a, 3 more", 3: "a, b, 2 more", 4: "a, b, c, d", 5: "a, b, c, d"} {
		if got := strings.Join(Shorten(things, max), ", "); got != want {
			t.Errorf("%d: %q, want %q", max, got, want)
		}
	}
	if Shorten(nil, 1) != nil || things[2] != "c" {
		t.Error("Shorten changed its argument")
	}
}
