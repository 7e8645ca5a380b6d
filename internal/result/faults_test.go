package result

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFaults(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s, err := Create(dir, &Run{ID: "x"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Fault{{File: "a/<b>", Line: 3, Text: "cut off", Code: "import_fault"}, {File: ".", Text: "much is missing"}}
	if err := s.WriteFaults(want); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	rec, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, rec.Faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestParseFaults(t *testing.T) {
	good := `{"file":"a","text":"b"}` + "\n"
	for name, test := range map[string]struct {
		text string
		read int
		bad  bool
	}{
		"none":         {"", 0, false},
		"two":          {good + good, 2, false},
		"cut off":      {good + `{"file":`, 1, true},
		"without text": {good + `{"file":"a"}`, 1, true},
		"no object":    {`[]`, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			faults, err := parseFaults(strings.NewReader(test.text))
			if len(faults) != test.read || (err != nil) != test.bad {
				t.Errorf("%d faults, %v", len(faults), err)
			}
		})
	}
}

func FuzzFaults(f *testing.F) {
	f.Add(`{"file":"a","line":1,"text":"b","code":"c"}` + "\n{")
	f.Fuzz(func(t *testing.T, text string) {
		faults, _ := parseFaults(strings.NewReader(text))
		for _, fault := range faults {
			if fault.Text == "" {
				t.Error("a fault without text")
			}
		}
	})
}

func TestSealAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s, err := Create(dir, &Run{ID: "x"})
	if err != nil {
		t.Fatal(err)
	}
	sample := func(step string) *Sample {
		return &Sample{Contender: "a", Step: step, Round: 1, Verdict: Valid, Metrics: map[string]float64{"goodput": 1}}
	}
	if err := s.SealAll([]*Sample{sample("x"), sample("y"), sample("x")}); err == nil {
		t.Error("one sample twice was taken")
	}
	if err := s.SealAll([]*Sample{sample("x"), sample("y")}); err != nil {
		t.Fatal(err)
	}
	if err := s.Seal(sample("y")); err == nil {
		t.Error("a sealed sample was sealed again")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	rec, err := Load(dir)
	if err != nil || len(rec.Samples) != 2 || len(rec.Faults) != 0 {
		t.Errorf("%d samples, faults %v, %v", len(rec.Samples), rec.Faults, err)
	}
}
