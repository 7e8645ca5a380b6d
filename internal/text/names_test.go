package text

import (
	"errors"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"run", "report", "flannel-vxlan", "flannel-host-gw"}
	for given, want := range map[string]string{
		"rnu": "run", "repotr": "report", "flanel-vxlan": "flannel-vxlan", "host-gw": "flannel-host-gw",
		"xyz": "", "q": "", "": "",
	} {
		if got := Nearest(given, names); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

func TestUnknown(t *testing.T) {
	err := Unknown("suite", "quik", []string{"throughput", "quick"})
	var e *UnknownError
	if !errors.As(err, &e) || err.Error() != `unknown suite "quik"; did you mean "quick"?` {
		t.Error(err)
	}
	if err := Unknown("suite", "zzz", []string{"b", "a"}); err.Error() != `unknown suite "zzz"; there are: [a b]` {
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
