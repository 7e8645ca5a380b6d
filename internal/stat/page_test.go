package stat

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that docs/methods.md and docs/dev/simulations.md name exists.
func TestPageNamesTests(t *testing.T) {
	var page []byte
	for _, name := range []string{"methods.md", "dev/simulations.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		page = append(page, text...)
	}
	var tests strings.Builder
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		tests.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(string(page), -1) {
		if !strings.Contains(tests.String(), "func "+name[1]+"(") {
			t.Errorf("the pages name %s, which is no test", name[1])
		}
	}
}
