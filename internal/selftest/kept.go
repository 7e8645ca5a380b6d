package selftest

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/atomicfile"
)

// Kept is a machine's newest self-test. It is a file in the user's state folder.
type Kept struct {
	Schema  string    `json:"schema"`
	At      time.Time `json:"at"`
	Version string    `json:"version"` // of this program
	Kernel  string    `json:"kernel"`  // the kernel's release
	Missed  []string  `json:"missed"`  // trials that failed
}

const keptFile = "selftest.json"

// Keep writes the result to the state folder.
func (r Result) Keep(dir, version, kernel string, at time.Time) error {
	k := Kept{Schema: Schema, At: at.UTC().Truncate(time.Second), Version: version, Kernel: kernel, Missed: []string{}}
	for _, t := range r.Trials {
		if !t.Passed && t.LeftOut == "" {
			k.Missed = append(k.Missed, t.Name)
		}
	}
	text, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return atomicfile.ReplaceFile(filepath.Join(dir, keptFile), func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// Newest returns the newest self-test of the version and kernel in the state folder; nil if
// there is none.
func Newest(dir, version, kernel string) *Kept {
	text, err := os.ReadFile(filepath.Join(dir, keptFile))
	if err != nil {
		return nil
	}
	var k Kept
	if json.Unmarshal(text, &k) != nil || k.Schema != Schema || k.Version != version || k.Kernel != kernel {
		return nil
	}
	return &k
}

// String returns a short description of the self-test's result.
func (k *Kept) String() string {
	on := " on " + k.At.Format(time.DateOnly)
	if len(k.Missed) > 0 {
		return "not found" + on + ": " + strings.Join(k.Missed, ", ")
	}
	return "passed" + on
}
