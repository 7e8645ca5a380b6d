package pagetest

import "testing"

func TestSplice(t *testing.T) {
	const page = "before\n<!-- generated:x -->\nold\n<!-- /generated:x -->\nafter\n"
	got, err := splice(page, "x", "new")
	if want := "before\n<!-- generated:x -->\n\nnew\n<!-- /generated:x -->\nafter\n"; got != want || err != nil {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if _, err := splice(page, "y", "new"); err == nil {
		t.Error("a part without markers was accepted")
	}
}
