// Package pagetest keeps the generated parts of documentation pages equal to
// what they are generated from. Only tests may import it. Next: pagetest.go.
package pagetest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Check compares the parts of the page with texts by the parts' names. With
// update it writes the texts into the page instead. A part begins with the line
// <!-- generated:NAME --> and ends with <!-- /generated:NAME -->.
func Check(t *testing.T, page string, update bool, texts map[string]string) {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := string(data)
	for name, text := range texts {
		if want, err = splice(want, name, text); err != nil {
			t.Fatalf("%s: %v", page, err)
		}
	}
	CheckWhole(t, page, update, want)
}

// CheckWhole compares the whole page with a text. With update it writes the text instead.
func CheckWhole(t *testing.T, page string, update bool, want string) {
	t.Helper()
	if update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatalf("%v; go generate ./... writes the page", err)
	}
	if diff := cmp.Diff(want, string(have)); diff != "" {
		t.Errorf("%s is not what go generate ./... writes:\n%s", page, diff)
	}
}

// splice replaces the text between the markers of a part.
func splice(page, name, text string) (string, error) {
	open, end := "<!-- generated:"+name+" -->\n", "<!-- /generated:"+name+" -->"
	before, rest, opened := strings.Cut(page, open)
	_, after, ended := strings.Cut(rest, end)
	if !opened || !ended {
		return "", fmt.Errorf("the markers of part %q are missing", name)
	}
	return before + open + "\n" + text + "\n" + end + after, nil
}
