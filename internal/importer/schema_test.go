package importer

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cnibench/cnibench/docs/schema"
	"github.com/cnibench/cnibench/internal/result"
)

// TestSchemas: an imported run is a run as docs/format.md describes it, however
// broken its source is.
func TestSchemas(t *testing.T) {
	for format, archive := range map[string]string{"infrabuilder": "faulty.txtar", "knb": "knb.txtar"} {
		dir, out := t.TempDir(), filepath.Join(t.TempDir(), "run")
		unpack(t, archive, dir)
		if _, err := Import(context.Background(), format, dir, out, Options{Tool: result.Tool{Name: "cnibench", Version: "test"}}); err != nil {
			t.Fatal(err)
		}
		run, err := os.ReadFile(filepath.Join(out, "run.json"))
		if err != nil {
			t.Fatal(err)
		}
		valid(t, "run-1.schema.json", string(run))
		samples, err := os.ReadFile(filepath.Join(out, "samples.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(samples)) {
			valid(t, "sample-1.schema.json", line)
		}
	}
}

func valid(t *testing.T, file, text string) {
	t.Helper()
	data, err := schema.FS.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(file, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(file)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(value); err != nil {
		t.Errorf("%s: %v\n%s", file, err, text)
	}
}
