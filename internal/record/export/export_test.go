package export

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
)

var at = time.Unix(1700000000, 0).UTC()

// counter and gauge make recordings with two snapshots.
func counter(name string) sysmon.Family {
	return sysmon.Family{Name: name, Type: "counter", Help: "Help of " + name + ".", Series: []sysmon.Series{{Values: []sysmon.Value{1, 2}}}}
}

func gauge(name string) sysmon.Family {
	f := counter(name)
	f.Type = "gauge"
	return f
}

func recording(node string, families ...sysmon.Family) *sysmon.Recording {
	return &sysmon.Recording{Labels: map[string]string{"node": node, "endpoint": node}, Times: []time.Time{at, at.Add(time.Second)}, Families: families}
}

func zipped(t testing.TB, recs ...*sysmon.Recording) []byte {
	t.Helper()
	var text bytes.Buffer
	if err := sysmon.WriteOpenMetrics(&text, recs...); err != nil {
		t.Fatal(err)
	}
	return compress(t, text.Bytes())
}

func compress(t testing.TB, text []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return z.EncodeAll(text, nil)
}

// run is a record of one sample for each folder, and its files.
func run() *result.Record {
	rec := &result.Record{Run: result.Run{ID: "r\"1"}}
	for _, raw := range []string{"raw/host/1/dts", "raw/host/2/dts", "raw/x/1/dts"} {
		rec.Samples = append(rec.Samples, result.Sample{Contender: path.Base(path.Dir(path.Dir(raw))), Underlay: "switch", Step: "dts", Round: len(rec.Samples) + 1, Raw: raw})
	}
	return rec
}

// export is the text and the faults.
func export(t testing.TB, files fs.FS, rec *result.Record) (string, []result.Fault) {
	t.Helper()
	scratch, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer scratch.Close()
	var out bytes.Buffer
	var faults []result.Fault
	if err := Recordings(&out, files, rec, scratch, func(f result.Fault) { faults = append(faults, f) }); err != nil {
		t.Fatal(err)
	}
	return out.String(), faults
}

func TestRecordings(t *testing.T) {
	files := fstest.MapFS{
		"raw/host/1/dts/" + sysmon.SampleFile: {Data: zipped(t, recording("node1", counter("a"), gauge("b")))},
		"raw/x/1/dts/" + sysmon.SampleFile:    {Data: zipped(t, recording("node1", gauge("b"), counter("c")))},
	}
	got, faults := export(t, files, run())
	own := func(contender, round string) string {
		return `{contender="` + contender + `",endpoint="node1",node="node1",round="` + round + `",run="r\"1",step="dts",underlay="switch"} `
	}
	points := func(name, first, second, labels string) string {
		return name + labels + first + " 1700000000.000000000\n" + name + labels + second + " 1700000001.000000000\n"
	}
	want := "# TYPE cnibench_recording info\n# HELP cnibench_recording One point for each snapshot of a recorder, under the labels that all of its series carry.\n" +
		points("cnibench_recording_info", "1", "1", own("host", "1")) + points("cnibench_recording_info", "1", "1", own("x", "3")) +
		"# TYPE a counter\n# HELP a Help of a.\n" + points("a_total", "1", "2", own("host", "1")) +
		"# TYPE b gauge\n# HELP b Help of b.\n" + points("b", "1", "2", own("host", "1")) + points("b", "1", "2", own("x", "3")) +
		"# TYPE c counter\n# HELP c Help of c.\n" + points("c_total", "1", "2", own("x", "3"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if len(faults) > 0 {
		t.Errorf("faults: %v", faults)
	}
}

// TestDamage: what can't stand in the text is left out and named; the rest is
// there.
func TestDamage(t *testing.T) {
	good := zipped(t, recording("node1", counter("a")))
	for name, c := range map[string]struct {
		file *fstest.MapFile
		says string
	}{
		"no zstd":                {&fstest.MapFile{Data: []byte("# EOF\n")}, "magic"},
		"cut off":                {&fstest.MapFile{Data: good[:len(good)/2]}, "EOF"},
		"no OpenMetrics":         {&fstest.MapFile{Data: compress(t, []byte("hello\n"))}, "line 1"},
		"another type":           {&fstest.MapFile{Data: zipped(t, recording("node1", gauge("a")))}, "another file"},
		"another's sample name":  {&fstest.MapFile{Data: zipped(t, recording("node1", gauge("a_total")))}, "another file"},
		"the report's name":      {&fstest.MapFile{Data: zipped(t, recording("node1", gauge("cnibench_tier")))}, "the report's own"},
		"the run's label":        {&fstest.MapFile{Data: zipped(t, recording("node1", sysmon.Family{Name: "d", Type: "gauge", Series: []sysmon.Series{{Labels: map[string]string{"run": "x"}, Values: []sysmon.Value{1, 2}}}}))}, "label"},
		"a folder":               {&fstest.MapFile{Mode: fs.ModeDir | 0o755}, "regular"},
		"a pipe":                 {&fstest.MapFile{Mode: fs.ModeNamedPipe | 0o644}, "regular"},
		"same labels, after all": {&fstest.MapFile{Data: zipped(t, withRound("1"), withRound("2"))}, "two recordings"},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{"raw/host/1/dts/" + sysmon.SampleFile: {Data: good}, "raw/host/2/dts/" + sysmon.SampleFile: c.file, "raw/x/1/dts/" + sysmon.SampleFile: {Data: good}}
			got, faults := export(t, files, run())
			if n := strings.Count(got, "a_total{"); n != 4 {
				t.Errorf("%d points, want the 4 of the good files:\n%s", n, got)
			}
			if len(faults) != 1 || faults[0].File != "raw/host/2/dts/"+sysmon.SampleFile || !strings.Contains(faults[0].Text, c.says) {
				t.Errorf("faults: %v, want one that says %q", faults, c.says)
			}
			valid(t, got)
		})
	}
}

func withRound(round string) *sysmon.Recording {
	r := recording("node1", counter("a"))
	r.Labels["round"] = round
	return r
}

// TestSpills: families that are larger than a chunk come back whole and in
// order.
func TestSpills(t *testing.T) {
	long := recording("node1", counter("a"), gauge("b"))
	long.Times = nil
	for i := range long.Families {
		long.Families[i].Series[0].Values = nil
	}
	for n := range 6000 {
		long.Times = append(long.Times, at.Add(time.Duration(n)*time.Second))
		for i := range long.Families {
			long.Families[i].Series[0].Values = append(long.Families[i].Series[0].Values, sysmon.Value(n))
		}
	}
	files := fstest.MapFS{"raw/host/1/dts/" + sysmon.SampleFile: {Data: zipped(t, long)}, "raw/host/2/dts/" + sysmon.SampleFile: {Data: zipped(t, long)}}
	got, faults := export(t, files, run())
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	valid(t, got)
	recs, err := sysmon.ReadOpenMetrics(strings.NewReader(got + "# EOF\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(recs) != 2 {
		t.Fatalf("%d recordings", len(recs))
	}
	for i, rec := range recs {
		if diff := cmp.Diff(long.Families, rec.Families); diff != "" {
			t.Errorf("recording %d: -want +got\n%.2000s", i, diff)
		}
	}
}

// broken is a scratch file on a full disk.
type broken struct{ fault error }

func (b broken) Write([]byte) (int, error)         { return 0, b.fault }
func (b broken) ReadAt([]byte, int64) (int, error) { return 0, b.fault }

func lines(w io.Writer, line string, n int) error {
	for range n {
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	return nil
}

func TestFullDisk(t *testing.T) {
	full := errors.New("disk full")
	s := newSpool(broken{full})
	err := lines(s, "# TYPE a gauge\n", 1)
	if err == nil {
		err = lines(s, "a 1 1\n", chunkSize)
	}
	if !errors.Is(err, full) || !errors.Is(s.copyTo(io.Discard), full) {
		t.Errorf("error %v", err)
	}
}

// valid says that Prometheus reads the text, and that each family is there
// once.
func valid(t testing.TB, text string) {
	t.Helper()
	p := textparse.NewOpenMetricsParser([]byte(text+"# EOF\n"), labels.NewSymbolTable())
	seen := map[string]bool{}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("Prometheus: %v in\n%.2000s", err, text)
		}
		if entry == textparse.EntryType {
			name, _ := p.Type()
			if seen[string(name)] {
				t.Errorf("family %s again", name)
			}
			seen[string(name)] = true
		}
	}
}

// FuzzRecordings: whatever a file holds, the text is valid and the other
// files are in it.
func FuzzRecordings(f *testing.F) {
	good := zipped(f, recording("node1", counter("a"), gauge("b")))
	f.Add([]byte("# TYPE a gauge\na 1 1\n# EOF\n"))
	f.Add([]byte("# TYPE cnibench_recording info\ncnibench_recording_info{node=\"n\"} 1 1\n# TYPE b gauge\nb{node=\"n\"} 1 1\n# EOF\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		files := fstest.MapFS{"raw/host/1/dts/" + sysmon.SampleFile: {Data: good}, "raw/host/2/dts/" + sysmon.SampleFile: {Data: compress(t, text)}, "raw/x/1/dts/" + sysmon.SampleFile: {Data: good}}
		got, _ := export(t, files, run())
		valid(t, got)
		if n := strings.Count(got, "\na_total{contender=\"host\",endpoint=\"node1\",node=\"node1\",round=\"1\""); n != 2 {
			t.Errorf("%d points of the first file in\n%s", n, got)
		}
	})
}
