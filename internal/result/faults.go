package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// faultsFile lists what was wrong in the files that a run was imported from.
const faultsFile = "faults.jsonl"

// faultLine is a Fault as a line of faultsFile. Its fields must be those of Fault.
type faultLine struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
	Code string `json:"code,omitempty"`
	Next string `json:"-"`
}

// WriteFaults writes faults that were found before the run directory was made, in the
// files of an import. Load returns them together with its own faults. Without faults
// WriteFaults makes no file. Errors: ErrNoSpace.
func (s *Store) WriteFaults(faults []Fault) error {
	if len(faults) == 0 {
		return nil
	}
	return replace(s.files, faultsFile, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		for _, f := range faults {
			if err := enc.Encode(faultLine(f)); err != nil {
				return err
			}
		}
		return nil
	})
}

// loadFaults reads the faults that WriteFaults wrote.
func (r *Record) loadFaults(root *os.Root) {
	data := r.loadFile(root, faultsFile, maxRunFile)
	if data == nil {
		return
	}
	faults, err := parseFaults(bytes.NewReader(data))
	r.Faults = append(r.Faults, faults...)
	if err != nil {
		r.fault(faultsFile, len(faults)+1, "%v; the faults behind it are not known", err)
	}
}

// parseFaults reads faults up to the first bad one.
func parseFaults(rd io.Reader) ([]Fault, error) {
	var faults []Fault
	dec := json.NewDecoder(rd)
	for {
		var f faultLine
		switch err := dec.Decode(&f); {
		case errors.Is(err, io.EOF):
			return faults, nil
		case err != nil:
			return faults, err
		case f.Text == "":
			return faults, fmt.Errorf("a fault without text")
		}
		faults = append(faults, Fault(f))
	}
}
