package contender_test

import (
	"bufio"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/contender"
)

func catalogue(t *testing.T) []*contender.Contender {
	t.Helper()
	all, err := contender.Load(contenders.FS)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// inLab returns the contenders that the lab runs, by their ids.
func inLab(t *testing.T) []string {
	t.Helper()
	var ids []string
	for _, c := range catalogue(t) {
		if c.Lab.None == "" {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// TestRemediesNameContenders: a remedy that sends the user to a contender
// sends them to one that exists and that the lab runs, or says "install".
func TestRemediesNameContenders(t *testing.T) {
	run := regexp.MustCompile(`Run ([a-z0-9-]+)(?: and ([a-z0-9-]+))?`)
	all, lab := catalogue(t), inLab(t)
	for _, c := range all {
		if c.Lab.None == "" {
			continue
		}
		names := run.FindStringSubmatch(c.Lab.Remedy)
		if names == nil && !strings.HasPrefix(c.Lab.Remedy, "Install ") {
			t.Errorf("%s: remedy starts neither with Run nor with Install: %s", c.ID, c.Lab.Remedy)
			continue
		}
		for _, name := range names[min(1, len(names)):] {
			if name != "" && !slices.Contains(lab, name) {
				t.Errorf("%s: remedy names %q, which the lab does not run", c.ID, name)
			}
		}
	}
}

// TestConfigurationHasSources: in a lab form every piece, and every value of
// a piece, stands under a comment that says what it copies.
func TestConfigurationHasSources(t *testing.T) {
	for _, id := range inLab(t) {
		data, err := fs.ReadFile(contenders.FS, id+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		part := "" // the piece, or the block of values, that the source was given for
		inPieces, sourced := false, false
		lines := bufio.NewScanner(strings.NewReader(string(data)))
		for n := 1; lines.Scan(); n++ {
			line := lines.Text()
			key := strings.TrimSpace(line)
			switch {
			case line == "lab:":
				inPieces = true
			case key == "own:" || key == "reproduced:" || key == "kube:":
				inPieces = false
			case !inPieces:
			case strings.HasPrefix(key, "# source: "):
				sourced = true
			case key == "attach:" || key == "transport:" || key == "encryption:" || key == "extras:" || key == "service:":
				part, sourced = key, false
			case strings.HasPrefix(key, "- use:"):
				if !sourced {
					t.Errorf("%s.yaml:%d: %s names no source", id, n, key)
				}
				sourced = strings.Contains(key, "sysctl") // its values are on the next line
			case strings.HasPrefix(key, "#") || strings.HasPrefix(key, "use:") || key == "with:":
			case !sourced:
				t.Errorf("%s.yaml:%d: %s of %s names no source", id, n, key, part)
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
	}
}
