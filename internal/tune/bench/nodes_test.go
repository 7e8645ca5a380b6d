package bench

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/tune"
)

// Settings are made on every node and nowhere else, and taken back before the network
// goes, to where the node's journal was before.
func TestNodes(t *testing.T) {
	v := tune.Variants(base.ID, tune.Request{Settings: []tune.Choice{{Setting: "rps"}}})[0]
	n := &fakeNetwork{answer: func(string) (tune.Answer, error) {
		return tune.Answer{Left: map[string]string{"rps": "no queues"}}, nil
	}}
	b := OnNodes(fakeArena{net: n}, "cnibench", base, map[string]tune.Variant{v.ID: v})
	b.by = "B"
	net, err := b.Up(t.Context(), v.Contender(base), "")
	if err != nil || n.up != base.ID {
		t.Fatalf("%v: %s is up, want what the cluster knows: %s", err, n.up, base.ID)
	}
	if notes := net.Notes(); len(notes) != 2 || notes[1].Code != tune.NothingSet {
		t.Errorf("%+v", notes)
	}
	if err := net.Down(t.Context()); err != nil || n.up != "" {
		t.Error(n.up, err)
	}
	want := []string{
		`node1: cnibench agent on-node -- tune here --node --by=B: {"settings":[{"setting":"rps"}]}`,
		`node1: cnibench agent on-node -- tune here --node --by=B --take-back: {}`,
	}
	if diff := cmp.Diff(want, n.asked); diff != "" {
		t.Error(diff)
	}
	n.asked = nil
	if _, err = b.Up(t.Context(), base, ""); err != nil || len(n.asked) > 0 {
		t.Errorf("without settings: %v, %q", err, n.asked)
	}
	// An answer that is lost may have been given: the node is asked to take back.
	n.answer = func(string) (tune.Answer, error) {
		if strings.Contains(n.asked[len(n.asked)-1], "rps") {
			return tune.Answer{}, errors.New("the stream broke")
		}
		return tune.Answer{}, nil
	}
	if _, err := b.Up(t.Context(), v.Contender(base), ""); err == nil || n.up != "" {
		t.Errorf("%v, left up: %q", err, n.up)
	}
	if diff := cmp.Diff(want, n.asked); diff != "" {
		t.Error(diff)
	}
	n.asked = nil
	n.answer = func(string) (tune.Answer, error) { return tune.Answer{}, errors.New("denied") }
	if _, err := b.Up(t.Context(), v.Contender(base), ""); err == nil || !strings.Contains(err.Error(), "settings of node1: denied") || n.up != "" {
		t.Errorf("%v, left up: %q", err, n.up)
	}
}
