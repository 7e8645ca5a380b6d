package sysmon

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"

	"github.com/cnibench/cnibench/internal/text"
)

// Scope says which samplers a recorder runs.
type Scope string

// A recorder on a node runs all samplers. A recorder in a pod runs only those that read
// its own network namespace or its own process: the others would count the node twice.
const (
	ScopeNode Scope = "node"
	ScopePod  Scope = "pod"
)

// ParseScope returns the scope of that name. The error for an unknown name is a
// *text.UnknownError.
func ParseScope(name string) (Scope, error) {
	switch s := Scope(name); s {
	case ScopeNode, ScopePod:
		return s, nil
	}
	return "", text.Unknown("scope", name, []string{string(ScopeNode), string(ScopePod)})
}

// Sampler reads a group of metrics from the machine.
type Sampler struct {
	Name string
	// Scope is ScopeNode for values of the machine, and ScopePod for values of a
	// network namespace or of the recorder's process. Nodes record both.
	Scope   Scope
	Metrics []Metric
	// Optional samplers read files that many machines lack: missing files are no
	// fault.
	Optional bool
	// Sparse leaves a series out while its counter is zero. A series that is missing
	// at the start of a recording was zero.
	Sparse bool
	// sample reads the files below the root. After an error its values are dropped.
	sample func(root Root, out *frame) error
}

// Root is where samplers read: the machine's own files, or a fixture's.
type Root struct {
	Proc fs.FS // stands for /proc
	Sys  fs.FS // stands for /sys; nil where no sampler needs it
}

// Machine returns the root of the machine that this program runs on.
func Machine() Root { return Root{Proc: newKeepingFS("/proc"), Sys: newKeepingFS("/sys")} }

// Metric describes a family of series that a sampler records.
type Metric struct {
	Name   string // without _total
	Type   string // counter or gauge
	Unit   string // "", seconds, bytes; the name ends in it
	Help   string
	Labels []string // names of the labels in which the family's series differ, two at most
}

// frame holds the values of one snapshot of a sampler.
type frame struct {
	rows []row
	file bytes.Buffer // the file that is being parsed
}

// row is one value. Its texts may be parts of a file's text; the recorder clones them, so
// that the file's text can be freed.
type row struct {
	key   seriesKey
	value float64
}

type seriesKey struct {
	metric string
	labels [2]string // values, in the order of Metric.Labels
}

func (f *frame) add(metric string, value float64, labels ...string) {
	r := row{key: seriesKey{metric: metric}, value: value}
	copy(r.key.labels[:], labels)
	f.rows = append(f.rows, r)
}

// fromFile returns the sample function of a sampler that parses one file of /proc.
func fromFile(name string, parse func(io.Reader, *frame) error) func(Root, *frame) error {
	return func(root Root, out *frame) error { return readFile(root.Proc, name, parse, out) }
}

func readFile(root fs.FS, name string, parse func(io.Reader, *frame) error, out *frame) error {
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := parse(file, out); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// text reads all of r. The files of /proc are small, but their lines can be
// longer than a bufio.Scanner takes (intr in /proc/stat).
func (f *frame) text(r io.Reader) (string, error) {
	f.file.Reset()
	_, err := f.file.ReadFrom(r)
	return f.file.String(), err
}
