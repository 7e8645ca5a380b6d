// Package trace reads the recordings beside a run's samples: what the nodes did, second by
// second. It returns the values that reports draw. It judges nothing and writes nothing.
// What cannot be read is a fault, not an error. Next: rates.go computes the rates of one
// recording, window.go finds the measured window in it.
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

// Limits. A larger recording was not written by cnibench, or would need too much memory.
const (
	maxFile   = 64 << 20  // compressed
	maxText   = 512 << 20 // decompressed, all families
	maxKept   = 64 << 20  // decompressed, only the families that are drawn
	maxLine   = 64 << 10
	maxValues = 8 << 20 // float64 of all traces together
	maxCells  = 4 << 20 // series × times of a recording
)

// Up to maxParsers recordings are read in parallel, at most maxAhead recordings before their
// turn to be added.
const maxParsers, maxAhead = 4, 8

// Load reads the recordings of the record's samples in the run directory dir. A sample
// without a recording has no trace. The faults name what could not be read, and how many
// traces were left out because all together were too large. Load opens nothing outside dir.
func Load(dir string, rec *result.Record) ([]analysis.Trace, []result.Fault) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, []result.Fault{{File: ".", Text: fmt.Sprintf("the recordings cannot be read: %v", err)}}
	}
	defer root.Close()

	g := &collector{reads: make([]outcome, len(rec.Samples)), room: make(chan struct{}, maxAhead)}
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), maxParsers) {
		wg.Go(func() {
			z := newDecoder()
			defer z.Close()
			for i := range next {
				g.put(i, readSample(z, root, rec, i))
			}
		})
	}
	names := map[string]bool{}
	for i := range rec.Samples {
		g.room <- struct{}{}
		raw := rec.Samples[i].Raw
		switch {
		case raw == "":
			g.put(i, outcome{})
		case names[raw]:
			g.put(i, outcome{fault: &result.Fault{File: path.Join(raw, sysmon.SampleFile), Text: "another sample's recording; the sample counts, but has no trace"}})
		default:
			names[raw] = true
			next <- i
		}
	}
	close(next)
	wg.Wait()
	return g.all()
}

// outcome is the result of reading a sample's recording; trace and fault are nil if it has
// no recording.
type outcome struct {
	trace *analysis.Trace
	fault *result.Fault
	done  bool
}

// collector receives recordings in any order, and adds their traces in the order of the
// samples as long as all values together stay within maxValues.
type collector struct {
	room chan struct{} // one element for each sample that is being read or waits for its turn

	mu     sync.Mutex
	reads  []outcome
	added  int // outcomes whose turn has come
	values int // numbers in all traces so far
	tooBig int // traces that were left out
}

// put stores the outcome of sample i and adds every outcome whose turn has come.
func (g *collector) put(i int, r outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r.done = true
	g.reads[i] = r
	for ; g.added < len(g.reads) && g.reads[g.added].done; g.added++ {
		<-g.room
		r := &g.reads[g.added]
		if r.trace == nil {
			continue
		}
		if n := size(r.trace); n <= maxValues-g.values {
			g.values += n
		} else {
			g.tooBig++
			r.trace = nil
		}
	}
}

// all returns the traces and faults.
func (g *collector) all() ([]analysis.Trace, []result.Fault) {
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
	if g.tooBig > 0 {
		faults = append(faults, result.Fault{File: "raw", Text: fmt.Sprintf("the traces of %d samples are left out: all traces together are larger than %d MiB", g.tooBig, maxValues*8>>20)})
	}
	return traces, faults
}

// readSample reads the recording of the record's sample i.
func readSample(z *zstd.Decoder, root *os.Root, rec *result.Record, i int) outcome {
	s := &rec.Samples[i]
	name := path.Join(s.Raw, sysmon.SampleFile)
	trace, err := readTrace(z, root, name, &rec.Run, s)
	switch {
	case err == nil:
		return outcome{trace: trace}
	case errors.Is(err, fs.ErrNotExist):
		return outcome{}
	}
	return outcome{fault: &result.Fault{File: name, Text: fmt.Sprintf("%v; the sample counts, but has no trace", err)}}
}

// readTrace reads the recording called name.
func readTrace(z *zstd.Decoder, root *os.Root, name string, run *result.Run, s *result.Sample) (*analysis.Trace, error) {
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

// newDecoder returns a decoder for many files, since its window is expensive to allocate.
func newDecoder() *zstd.Decoder {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(128<<20))
	if err != nil {
		panic(err) // the options are constants
	}
	return z
}

// parse reads the families that traces hold from compressed OpenMetrics text.
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

// wantedPrefixes lists how the names of the families begin that traces hold, and of the
// family that names the recordings.
var wantedPrefixes = []string{
	"cnibench_recording", cpuFamily, memoryFamily, receiveFamily, transmitFamily, retransmitFamily, energyFamily, trackedFamily, quotaFamily,
}

// filter returns the lines of the wanted families. Parsing the other lines would take most of
// the time of a large run's report.
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
	for _, w := range wantedPrefixes {
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

// roleOf returns "client" or "server" for a recording's node: its label, if that is one of
// them. Else the first node of the file is the client and the second the server, since runs
// write them in this order.
func roleOf(node string, order int) string {
	switch {
	case strings.EqualFold(node, "client"), strings.EqualFold(node, "server"):
		return strings.ToLower(node)
	case order == 0:
		return "client"
	case order == 1:
		return "server"
	}
	return "" // the step's traffic does not cross this node
}
