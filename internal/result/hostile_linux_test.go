package result

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// hostileDir makes the process that reads a hostile run directory.
const hostileDir = "CNIBENCH_TEST_HOSTILE"

// What is in a run directory of others takes no more memory than the budget,
// whatever each of its files is by itself.
func TestHostileDirectories(t *testing.T) {
	if dir := os.Getenv(hostileDir); dir != "" {
		readHostile(t, dir)
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
			for round := range 2000 {
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
			cmd := exec.Command(os.Args[0], "-test.run=^TestHostileDirectories$", "-test.v")
			cmd.Env = append(os.Environ(), hostileDir+"="+dir, "GOMEMLIMIT=512MiB")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			peak, text := 0, string(out)
			for line := range strings.Lines(text) {
				if kib, is := strings.CutPrefix(line, "VmHWM:"); is {
					peak, _ = strconv.Atoi(strings.Fields(kib)[0])
				}
			}
			t.Logf("%d MiB", peak>>10)
			if peak == 0 || peak<<10 > limit {
				t.Errorf("reading took %d KiB", peak)
			}
			if !strings.Contains(text, test.want) {
				t.Errorf("no word of %q: %.300s", test.want, text)
			}
		})
	}
}

// readHostile reads the directory, and prints what was wrong with it and the
// most memory that the process had.
func readHostile(t *testing.T, dir string) {
	maxMemory = 64 << 20
	rec, err := Load(dir)
	if err != nil {
		fmt.Println(err)
	} else if len(rec.Faults) > 0 {
		fmt.Println(rec.Faults[len(rec.Faults)-1].Text)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(status))
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
