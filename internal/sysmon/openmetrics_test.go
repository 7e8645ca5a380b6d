package sysmon

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

var update = flag.Bool("update", false, "write the goldens anew")

// specimens are two recordings with everything that needs care in the text.
func specimens() []*Recording {
	times := []time.Time{at(0), at(1), at(2).Add(123 * time.Microsecond)}
	network := Family{Name: "node_network_receive_bytes", Type: "counter", Unit: "bytes", Help: "Bytes received."}
	one, two := network, network
	one.Series = []Series{
		{map[string]string{"device": "eth0"}, []Value{1, 2, 3e12}},
		{map[string]string{"device": "a\"b\\c\nd µ,}{ 1"}, []Value{Absent, 0, 0.25}},
	}
	two.Series = []Series{{map[string]string{"device": "eth0"}, []Value{Absent, 18446744073709551615}}}
	return []*Recording{
		{
			Labels: map[string]string{"node": "node1", "endpoint": "node1"},
			Times:  times,
			Families: []Family{
				{Name: "node_cpu_seconds", Type: "counter", Unit: "seconds", Help: `CPU "time" by C:\mode` + "\nand µs.", Series: []Series{
					{map[string]string{"cpu": "0", "mode": "user"}, []Value{0.01, 0.02, 0.03}}}},
				one,
				{Name: "node_memory_used_bytes", Type: "gauge", Unit: "bytes", Series: []Series{{nil, []Value{-1, 1e300, 5e-324}}}},
				{Name: "node_empty", Type: "gauge", Series: []Series{{nil, []Value{Absent, Absent, Absent}}}},
			},
		},
		{
			Labels:   map[string]string{"node": "node1", "endpoint": "node1-pod1"},
			Times:    times[1:],
			Families: []Family{two},
		},
	}
}

func write(t testing.TB, recs ...*Recording) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteOpenMetrics(&b, recs...); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestOpenMetricsGolden keeps the text as it is.
func TestOpenMetricsGolden(t *testing.T) {
	got := write(t, specimens()...)
	const golden = "testdata/specimen.om"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

func TestOpenMetricsRoundTrip(t *testing.T) {
	want := specimens()
	want[0].Families = want[0].Families[:3] // a family without a value is not written
	got, err := ReadOpenMetrics(strings.NewReader(write(t, specimens()...)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, sameValue); diff != "" {
		t.Error(diff)
	}
	if got, err := ReadOpenMetrics(strings.NewReader(write(t))); err != nil || len(got) != 0 {
		t.Errorf("no recordings: %v, %v", got, err)
	}
}

// TestOpenMetricsByPrometheus has Prometheus' own parser read the specimens
// and a recording of the fixtures, and compares every point.
func TestOpenMetricsByPrometheus(t *testing.T) {
	r, err := newRecorder(of(os.DirFS("testdata/proc"), ScopeNode, map[string]string{"node": "n", "endpoint": "e"}))
	if err != nil {
		t.Fatal(err)
	}
	r.Mark()
	close(r.done)
	recs := append(specimens(), r.Stop())

	want := map[string]float64{}
	put := func(name string, a, b map[string]string, at time.Time, v float64) {
		pairs := []string{"__name__", name}
		for _, m := range []map[string]string{a, b} {
			for k, v := range m {
				pairs = append(pairs, k, v)
			}
		}
		want[fmt.Sprintf("%s@%d", labels.FromStrings(pairs...), at.UnixMilli())] = v
	}
	for _, r := range recs {
		for _, at := range r.Times {
			put(infoSample, r.Labels, nil, at, 1)
		}
		for _, f := range r.Families {
			for _, s := range f.Series {
				for i, v := range s.Values {
					if !v.IsAbsent() {
						put(sampleName(&f), r.Labels, s.Labels, r.Times[i], float64(v))
					}
				}
			}
		}
	}

	p := textparse.NewOpenMetricsParser([]byte(write(t, recs...)), labels.NewSymbolTable())
	got := map[string]float64{}
	types := map[string]int{}
	samples := 0
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch entry {
		case textparse.EntryType:
			name, _ := p.Type()
			types[string(name)]++
		case textparse.EntrySeries:
			samples++
			_, at, v := p.Series()
			var set labels.Labels
			p.Labels(&set)
			if at == nil {
				t.Fatalf("%s without a timestamp", set)
			}
			got[fmt.Sprintf("%s@%d", set, *at)] = v
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if samples != len(got) {
		t.Errorf("%d samples, %d different ones within a millisecond", samples, len(got))
	}
	for name, n := range types {
		if n != 1 {
			t.Errorf("%s is described %d times", name, n)
		}
	}
}

func TestWriteErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(recs []*Recording) []*Recording
		want   string
	}{
		{"same labels", func(r []*Recording) []*Recording { r[1].Labels = r[0].Labels; return r }, "two recordings have the labels"},
		{"other label names", func(r []*Recording) []*Recording { delete(r[1].Labels, "node"); return r }, "different label names"},
		{"label of both", func(r []*Recording) []*Recording {
			r[0].Families[0].Series[0].Labels["node"] = "x"
			return r
		}, "recording and series both have a label"},
		{"bad label name", func(r []*Recording) []*Recording { r[0].Families[0].Series[0].Labels["0"] = "x"; return r }, "no label name"},
		{"bad label value", func(r []*Recording) []*Recording { r[0].Families[0].Series[0].Labels["cpu"] = "\xff"; return r }, "not UTF-8"},
		{"bad metric name", func(r []*Recording) []*Recording { r[0].Families[0].Name = "a b"; return r }, "no metric name"},
		{"with _total", func(r []*Recording) []*Recording { r[0].Families[0].Name = "x_seconds_total"; return r }, "without _total"},
		{"other type", func(r []*Recording) []*Recording { r[0].Families[0].Type = "summary"; return r }, "counters and gauges"},
		{"unit not in the name", func(r []*Recording) []*Recording { r[0].Families[0].Unit = "ticks"; return r }, "does not end in the unit"},
		{"family twice", func(r []*Recording) []*Recording { r[0].Families[2] = r[0].Families[0]; return r }, "holds the family twice"},
		{"type differs", func(r []*Recording) []*Recording { r[1].Families[0].Type = "gauge"; return r }, "clashes"},
		{"sample name of another", func(r []*Recording) []*Recording {
			r[1].Families[0] = Family{Name: "node_cpu_seconds_total", Type: "gauge"}
			return r
		}, "clashes"},
		{"our info family", func(r []*Recording) []*Recording { r[0].Families[3].Name = infoSample; return r }, "clashes"},
		{"series twice", func(r []*Recording) []*Recording {
			r[0].Families[1].Series[1] = r[0].Families[1].Series[0]
			return r
		}, "holds the series twice"},
		{"values missing", func(r []*Recording) []*Recording { r[0].Times = r[0].Times[:2]; return r }, "3 values for 2 snapshots"},
		{"no snapshot", func(r []*Recording) []*Recording { r[0].Times = nil; return r }, "no snapshot"},
		{"times fall", func(r []*Recording) []*Recording { r[0].Times[2] = r[0].Times[1]; return r }, "does not come after"},
		{"before 1970", func(r []*Recording) []*Recording { r[0].Times[0] = time.Time{}; return r }, "1970"},
		{"infinite", func(r []*Recording) []*Recording { r[0].Families[0].Series[0].Values[0] = Value(math.Inf(1)); return r }, "infinite"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			err := WriteOpenMetrics(&b, tt.damage(specimens())...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if b.Len() > 0 {
				t.Errorf("%d bytes written before the error", b.Len())
			}
		})
	}
}

func TestReadForeign(t *testing.T) {
	const text = `# HELP up Is it up.
# TYPE up gauge
up{job="a"} 1 1700000000
up{job="a"} 0 1.7000000015e9
up{job="b\\c\z"} NaN 1700000001
# EOF`
	got, err := ReadOpenMetrics(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []*Recording{{
		Times: []time.Time{at(0), at(1), at(1.5)},
		Families: []Family{{Name: "up", Type: "gauge", Help: "Is it up.", Series: []Series{
			{map[string]string{"job": "a"}, []Value{1, Absent, 0}},
			{map[string]string{"job": `b\c\z`}, []Value{Absent, Absent, Absent}},
		}}},
	}}
	if diff := cmp.Diff(want, got, sameValue); diff != "" {
		t.Error(diff)
	}
}

func TestReadErrors(t *testing.T) {
	const head = "# TYPE a gauge\n"
	const info = "# TYPE cnibench_recording info\n"
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "no # EOF"},
		{"cut off between lines", head + "a 1 1\n", "no # EOF after line 2; the file was cut off"},
		{"cut off in a line", head + "a 1 1", "line 2: unexpected EOF"},
		{"after the end", "# EOF\na 1 1\n", "line 2: text after # EOF"},
		{"no timestamp", head + "a 1\n# EOF\n", "line 2: a: want a value and a timestamp"},
		{"exemplar", head + "a 1 1 # {} 1\n# EOF\n", "nothing more"},
		{"empty line", "\n# EOF\n", `line 1: "" is no sample`},
		{"comment", "# hello\n# EOF\n", "line 1"},
		{"histogram", "# TYPE a histogram\n# EOF\n", `type "histogram"`},
		{"other info", "# TYPE a info\n# EOF\n", `type "info"`},
		{"no type", "# HELP a b\na 1 1\n# EOF\n", `of type ""`},
		{"of another family", head + "b 1 1\n# EOF\n", "not a sample of the family"},
		{"counter without _total", "# TYPE a counter\na 1 1\n# EOF\n", "not a sample of the family"},
		{"family again", head + "a 1 1\n" + head + "# EOF\n", "family a appears a second time"},
		{"type twice", head + head + "# EOF\n", "TYPE unknown or given twice"},
		{"value", head + "a x 1\n# EOF\n", `value "x"`},
		{"infinite", head + "a +Inf 1\n# EOF\n", `value "+Inf"`},
		{"timestamp", head + "a 1 x\n# EOF\n", `timestamp "x"`},
		{"negative time", head + "a 1 -5\n# EOF\n", `timestamp "-5"`},
		{"far time", head + "a 1 9e99\n# EOF\n", `timestamp "9e99"`},
		{"time falls", head + "a 1 2\na 1 1\n# EOF\n", "timestamps must grow"},
		{"unit", "# TYPE a gauge\n# UNIT a seconds\na 1 1\n# EOF\n", "does not end in the unit"},
		{"open label", head + "a{b=\"c\n# EOF\n", "no closing quote"},
		{"open set", head + "a{b=\"c\"\n# EOF\n", "neither , nor }"},
		{"label twice", head + "a{b=\"c\",b=\"c\"} 1 1\n# EOF\n", "label b twice"},
		{"label name", head + "a{0=\"c\"} 1 1\n# EOF\n", "malformed label set"},
		{"not UTF-8", head + "a{b=\"\xff\"} 1 1\n# EOF\n", "line 2: not UTF-8"},
		{"info late", head + "a 1 1\n" + info + "cnibench_recording_info 1 1\n# EOF\n", "must be the first"},
		{"info of 2", info + "cnibench_recording_info 2 1\n# EOF\n", "want 1"},
		{"info of other names", info + "cnibench_recording_info{a=\"b\"} 1 1\ncnibench_recording_info{b=\"b\"} 1 1\n# EOF\n", "label names differ"},
		{"info apart", info + "cnibench_recording_info{a=\"b\"} 1 1\ncnibench_recording_info{a=\"c\"} 1 1\ncnibench_recording_info{a=\"b\"} 1 2\n# EOF\n", "must be together"},
		{"of no recording", info + "cnibench_recording_info{n=\"b\"} 1 1\n" + head + "a{n=\"c\"} 1 1\n# EOF\n", "belongs to no recording"},
		{"without the label", info + "cnibench_recording_info{n=\"b\"} 1 1\n" + head + "a 1 1\n# EOF\n", "the label n, which all recordings have, is missing"},
		{"at no snapshot", info + "cnibench_recording_info 1 1\n" + head + "a 1 2\n# EOF\n", "no snapshot at the time of a point"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadOpenMetrics(strings.NewReader(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
	if _, err := ReadOpenMetrics(strings.NewReader(head)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a text that was cut off: %v", err)
	}
}

// TestReadTooSparse is a small file that would be a huge table.
func TestReadTooSparse(t *testing.T) {
	var b strings.Builder
	b.WriteString("# TYPE a gauge\n")
	for i := range 6000 {
		fmt.Fprintf(&b, "a{b=\"%d\"} 1 %d\n", i, i)
	}
	b.WriteString("# EOF\n")
	if _, err := ReadOpenMetrics(strings.NewReader(b.String())); err == nil || !strings.Contains(err.Error(), "series × times") {
		t.Errorf("error %v", err)
	}
}

// FuzzReadOpenMetrics: what is read can be written, and what was written is
// read back the same.
func FuzzReadOpenMetrics(f *testing.F) {
	f.Add(write(f, specimens()...))
	f.Add("# TYPE up gauge\nup{job=\"a\"} 1 1700000000\n# EOF")
	f.Add("# TYPE cnibench_recording info\ncnibench_recording_info{n=\"b\"} 1 1.5\n# TYPE a counter\na_total{n=\"b\",c=\"\"} 1 1.5\n# EOF\n")
	f.Fuzz(func(t *testing.T, text string) {
		recs, err := ReadOpenMetrics(strings.NewReader(text))
		if err != nil {
			return
		}
		first := write(t, recs...)
		again, err := ReadOpenMetrics(strings.NewReader(first))
		if err != nil {
			t.Fatalf("%v\n%s", err, first)
		}
		if diff := cmp.Diff(first, write(t, again...)); diff != "" {
			t.Fatal(diff)
		}
	})
}
