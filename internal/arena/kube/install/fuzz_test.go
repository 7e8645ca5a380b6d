package install

import (
	"bytes"
	"os"
	"testing"

	"github.com/cnibench/cnibench/internal/contender"
)

// Whoever can write into the installer's namespace writes the journal: whatever is in
// it, reading it and looking for its steps does not panic.
func FuzzReadJournal(f *testing.F) {
	text, err := os.ReadFile("testdata/journal-1.json")
	if err != nil {
		f.Fatal(err)
	}
	in, err := New(Options{Image: "i:1"})
	if err != nil {
		f.Fatal(err)
	}
	b := newBed(nil)
	f.Add(text)
	f.Add([]byte(`{"schema":"cnibench/install/1","steps":[{},null,{"chart":{}},{"labels":{}},{"objects":[{}]}]}`))
	f.Add([]byte(`{"schema":"cnibench/install/1","before":{"nodes":{"a":null}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		packed := journalMap(t, text).BinaryData["journal.json.gz"]
		l, err := readJournal(bytes.NewReader(packed))
		if err != nil {
			return
		}
		_, _ = in.fromJournal(b.Cluster, product(contender.Leftovers{}), l) // an error is fine
	})
}
