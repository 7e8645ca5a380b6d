// Package trace reads what the nodes of a run did second by second, from the
// recordings that lie beside its samples, into the values that reports draw.
// It judges nothing and never writes; what can't be read is a fault and no
// error. Next: rates.go makes rates of one recording, window.go finds the
// measured window in it.
package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// What is larger than these was not written by cnibench, or is more than a
// reader's memory should hold.
const (
	maxFile   = 64 << 20  // compressed
	maxText   = 512 << 20 // decompressed, before the families that nobody draws are left out
	maxKept   = 64 << 20  // after that
	maxLine   = 64 << 10
	maxValues = 8 << 20 // float64 of all traces together
	maxCells  = 4 << 20 // series × times of a recording
)

// mostParsers recordings are read at a time, ahead are read before the ones before them
// are taken.
const mostParsers, ahead = 4, 8

// Load reads the recordings of the record's samples in the run directory dir.
// A sample without one has no trace. The faults name what could not be read,
// and what was left out because all traces together grew too large. Nothing
// outside dir is opened.
func Load(dir string, rec *result.Record) ([]analysis.Trace, []result.Fault) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, []result.Fault{{File: ".", Text: fmt.Sprintf("no recording is read: %v", err)}}
	}
	defer root.Close()

	g := &gathering{reads: make([]read, len(rec.Samples)), room: make(chan struct{}, ahead)}
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), mostParsers) {
		wg.Go(func() {
			z := newDecoder()
			defer z.Close()
			for i := range next {
				g.put(i, recordingOf(z, root, rec, i))
			}
		})
	}
	names := map[string]bool{}
	for i := range rec.Samples {
		g.room <- struct{}{}
		raw := rec.Samples[i].Raw
		switch {
		case raw == "":
			g.put(i, read{})
		case names[raw]:
			g.put(i, read{fault: &result.Fault{File: path.Join(raw, sysmon.SampleFile), Text: "another sample's recording; the sample counts, but has no trace"}})
		default:
			names[raw] = true
			next <- i
		}
	}
	close(next)
	wg.Wait()
	return g.all()
}

// read is what came of a sample's recording; both are nil where there is none.
type read struct {
	trace *analysis.Trace
	fault *result.Fault
	done  bool
}

// gathering takes what is read in any order, and keeps traces in the order of the
// samples while there is room for their values.
type gathering struct {
	room chan struct{} // a place for each sample that is read and not yet taken

	mu     sync.Mutex
	reads  []read
	taken  int // reads that are
	values int
	left   int // traces for which there was no room
}

func (g *gathering) put(i int, r read) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r.done = true
	g.reads[i] = r
	for ; g.taken < len(g.reads) && g.reads[g.taken].done; g.taken++ {
		<-g.room
		r := &g.reads[g.taken]
		if r.trace == nil {
			continue
		}
		if n := size(r.trace); n <= maxValues-g.values {
			g.values += n
		} else {
			g.left++
			r.trace = nil
		}
	}
}

func (g *gathering) all() ([]analysis.Trace, []result.Fault) {
	var traces []analysis.Trace
	var faults []result.Fault
	for _, r := range g.reads {
		if r.fault != nil {
			faults = append(faults, *r.fault)
		}
		if r.trace != nil {
			traces = append(traces, *r.trace)
		}
	}
	if g.left > 0 {
		faults = append(faults, result.Fault{File: "raw", Text: fmt.Sprintf("the traces of %d samples are left out: all together are larger than %d MiB", g.left, maxValues*8>>20)})
	}
	return traces, faults
}

// recordingOf reads the recording of the record's sample i.
func recordingOf(z *zstd.Decoder, root *os.Root, rec *result.Record, i int) read {
	s := &rec.Samples[i]
	name := path.Join(s.Raw, sysmon.SampleFile)
	trace, err := one(z, root, name, &rec.Run, s)
	switch {
	case err == nil:
		return read{trace: trace}
	case errors.Is(err, fs.ErrNotExist):
		return read{}
	}
	return read{fault: &result.Fault{File: name, Text: fmt.Sprintf("%v; the sample counts, but has no trace", err)}}
}

// one reads the recording of a sample.
func one(z *zstd.Decoder, root *os.Root, name string, run *result.Run, s *result.Sample) (*analysis.Trace, error) {
	f, err := result.OpenFile(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	recs, err := parse(z, io.LimitReader(f, maxFile))
	if err != nil {
		return nil, err
	}
	return &analysis.Trace{Key: s.Key(), Nodes: nodes(recs, run, s)}, nil
}

// newDecoder is for one file after another: its window is what costs.
func newDecoder() *zstd.Decoder {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(128<<20))
	if err != nil {
		panic(err) // the options are constants
	}
	return z
}

// parse reads the families that traces hold from a compressed OpenMetrics text.
func parse(z *zstd.Decoder, r io.Reader) ([]*sysmon.Recording, error) {
	if err := z.Reset(r); err != nil {
		return nil, err
	}
	kept, err := filter(io.LimitReader(z, maxText))
	if err != nil {
		return nil, err
	}
	return sysmon.ReadOpenMetricsUpTo(bytes.NewReader(kept), maxCells)
}

// wanted are the beginnings of the names of families that traces hold, and of
// the one that names the recordings.
var wanted = []string{
	"cnibench_recording", cpuFamily, memoryFamily, receiveFamily, transmitFamily, retransmitFamily, energyFamily,
}

// filter keeps the lines of the wanted families: parsing the rest would take most of the
// time that a large run's report takes.
func filter(r io.Reader) ([]byte, error) {
	var kept bytes.Buffer
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 16<<10), maxLine)
	for lines.Scan() {
		line := lines.Bytes()
		name := line
		if bytes.HasPrefix(line, []byte("# ")) { // # TYPE name …
			_, name, _ = bytes.Cut(line[2:], []byte(" "))
		}
		if !isWanted(name) && string(line) != "# EOF" {
			continue
		}
		if kept.Len()+len(line) > maxKept {
			return nil, fmt.Errorf("more than %d MiB of node metrics", maxKept>>20)
		}
		kept.Write(line)
		kept.WriteByte('\n')
	}
	return kept.Bytes(), lines.Err()
}

func isWanted(name []byte) bool {
	for _, w := range wanted {
		if len(name) >= len(w) && string(name[:len(w)]) == w {
			return true
		}
	}
	return false
}

// size returns how many numbers a trace holds.
func size(t *analysis.Trace) int {
	n := 0
	for i := range t.Nodes {
		node := &t.Nodes[i]
		for _, lines := range []map[string][]float64{node.CPU, node.Loads} {
			for _, line := range lines {
				n += len(line)
			}
		}
		n += len(node.Times) + len(node.Busy) + len(node.Busiest) + len(node.Receive) + len(node.Transmit) +
			len(node.Retransmits) + len(node.Memory) + len(node.Power)
	}
	return n
}

// roleOf is client or server for a recording's node: as its label says, else
// the first node of the file is the client's and the second the server's, as
// runs write them.
func roleOf(node string, order int) string {
	switch {
	case strings.EqualFold(node, "client"), strings.EqualFold(node, "server"):
		return strings.ToLower(node)
	case order == 0:
		return "client"
	case order == 1:
		return "server"
	}
	return "" // crossed by no traffic of the step
}
