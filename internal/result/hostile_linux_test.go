package result

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// hostileDir makes the process that reads a hostile run directory.
const hostileDir = "CNIBENCH_TEST_HOSTILE"

// What is in a run directory of others takes no more memory than the budget,
// whatever each of its files is by itself. The process has no more address space.
func TestHostileDirectories(t *testing.T) {
	if dir := os.Getenv(hostileDir); dir != "" {
		readHostile(dir)
		return
	}
	const limit = 1 << 30 // of a budget of 64 MiB; without one each takes several GiB
	for _, test := range []struct {
		name, want string
		make       func(t *testing.T, dir string, line func(round int, file string))
	}{
		{"one histogram for all samples", errReadBefore.Error(), func(t *testing.T, dir string, line func(int, string)) {
			writeBig(t, dir, "x.hdr")
			for round := range 2000 {
				line(round+1, "x.hdr")
			}
		}},
		{"a histogram for each of many samples", errBudget.Error(), func(t *testing.T, dir string, line func(int, string)) {
			for round := range 100 {
				file := fmt.Sprintf("%d.hdr", round)
				writeBig(t, dir, file)
				line(round+1, file)
			}
		}},
		{"many samples", errBudget.Error(), func(t *testing.T, dir string, line func(int, string)) {
			for round := range 1_000_000 {
				line(round+1, "")
			}
		}},
		{"a histogram that inflates", "when inflated", func(t *testing.T, dir string, line func(int, string)) {
			var text bytes.Buffer
			text.Write(make([]byte, 8))
			z := zlib.NewWriter(&text)
			// One block, which refers to nothing before itself but zeros, 2048 times:
			// to compress all of them takes minutes with the race detector.
			from := 0
			for range 2 {
				from = text.Len()
				if _, err := z.Write(make([]byte, 1<<20)); err != nil {
					t.Fatal(err)
				}
				if err := z.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			text.Write(bytes.Repeat(text.Bytes()[from:], 2046))
			copy(text.Bytes(), "\x1c\x84\x93\x14\x00\x1f\xff\xff") // HdrHistogram's V2, compressed
			write(t, filepath.Join(dir, "raw", "x.hdr"), []byte(base64.StdEncoding.EncodeToString(text.Bytes())))
			line(1, "x.hdr")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Create(dir, &Run{ID: "hostile", Started: time.Unix(0, 0)})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(dir, "raw"), 0o755); err != nil {
				t.Fatal(err)
			}
			samples, err := os.Create(filepath.Join(dir, samplesFile))
			if err != nil {
				t.Fatal(err)
			}
			w := bufio.NewWriter(samples)
			test.make(t, dir, func(round int, file string) {
				fmt.Fprintf(w, `{"schema":%q,"contender":"host","step":"dts","round":%d,"verdict":"valid","metrics":{"a":1,"b":1,"c":1},"raw":"raw"`, SampleSchema, round)
				if file != "" {
					fmt.Fprintf(w, `,"histograms":{"latency":%q}`, file)
				}
				fmt.Fprintln(w, "}")
			})
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if err := samples.Close(); err != nil {
				t.Fatal(err)
			}
			text := needs.Within(t, limit, []string{hostileDir + "=" + dir, "GOMEMLIMIT=512MiB"}, "-test.run=^TestHostileDirectories$", "-test.v")
			if !strings.Contains(text, test.want) {
				t.Errorf("no word of %q: %.300s", test.want, text)
			}
		})
	}
}

// readHostile reads the directory, and prints what was wrong with it.
func readHostile(dir string) {
	maxMemory = 64 << 20
	rec, err := Load(dir)
	if err != nil {
		fmt.Println(err)
	} else if len(rec.Faults) > 0 {
		fmt.Println(rec.Faults[len(rec.Faults)-1].Text)
	}
}

// writeBig writes a histogram that is small on the disk and 3.5 MiB in memory.
func writeBig(t *testing.T, dir, name string) {
	t.Helper()
	text, err := hdrhistogram.New(1, 1<<40, 4).Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "raw", name), text)
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
