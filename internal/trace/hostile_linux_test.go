package trace

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

const hostileRun = "CNIBENCH_TEST_HOSTILE_TRACES"

// TestMain is also the process that reads the recordings of a hostile run.
func TestMain(m *testing.M) {
	dir, samples, is := strings.Cut(os.Getenv(hostileRun), ":")
	if !is {
		os.Exit(m.Run())
	}
	n, _ := strconv.Atoi(samples)
	rec := &result.Record{}
	for i := range n {
		rec.Samples = append(rec.Samples, result.Sample{Contender: "x", Step: "dts", Round: i + 1, Started: start, Elapsed: 1e6, Verdict: result.Valid, Raw: raw(i)})
		if _, err := os.Stat(filepath.Join(dir, raw(i))); err != nil { // the first one's again
			rec.Samples[i].Raw = raw(0)
		}
	}
	traces, faults := Load(dir, rec)
	fmt.Println(len(traces), "traces")
	for _, f := range faults {
		fmt.Println(f.Text)
	}
}

func raw(i int) string { return fmt.Sprintf("raw/%d", i) }

// Whatever recordings a run directory has: they take no more memory than those of a few
// samples and the traces that are kept.
func TestHostileRecordings(t *testing.T) {
	const limit = 1536 << 20
	long := func(w *bufio.Writer) { // values of one series for days
		fmt.Fprint(w, "# TYPE node_memory_used_bytes gauge\n")
		for at := range 400_000 {
			fmt.Fprintf(w, "node_memory_used_bytes 1 %d\n", start.Unix()+int64(at))
		}
	}
	for _, test := range []struct {
		name, want     string
		files, samples int
		write          func(w *bufio.Writer)
	}{
		{"one long recording for all samples", "another sample's recording", 1, 3000, long},
		{"long recordings", "are left out", 12, 12, long},
		{"sparse series", "series × times", 4, 4, func(w *bufio.Writer) {
			fmt.Fprint(w, "# TYPE node_network_receive_bytes counter\n")
			for at := range 50_000 {
				fmt.Fprintf(w, "node_network_receive_bytes_total{device=\"d%d\"} 1 %d\n", at, start.Unix()+int64(at))
			}
		}},
		{"an endless line", "token too long", 2, 2, func(w *bufio.Writer) {
			for range 100 {
				fmt.Fprint(w, strings.Repeat("x", 1<<20))
			}
		}},
		{"what nobody draws", "", 2, 2, func(w *bufio.Writer) {
			for range 200_000 {
				fmt.Fprintln(w, strings.Repeat("x", 1000))
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			writeRecording(t, filepath.Join(dir, raw(0)), test.write)
			for i := 1; i < test.files; i++ {
				if err := os.Mkdir(filepath.Join(dir, raw(i)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Link(filepath.Join(dir, raw(0), sysmon.SampleFile), filepath.Join(dir, raw(i), sysmon.SampleFile)); err != nil {
					t.Fatal(err)
				}
			}
			text := needs.Within(t, limit, []string{fmt.Sprintf("%s=%s:%d", hostileRun, dir, test.samples)})
			if !strings.Contains(text, test.want) {
				t.Errorf("no word of %q: %.600s", test.want, text)
			}
		})
	}
}

func writeRecording(t *testing.T, folder string, write func(w *bufio.Writer)) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(folder, sysmon.SampleFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewWriter(f, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(z)
	write(w)
	fmt.Fprintln(w, "# EOF")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}
