package importer

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// hostileImport makes the process that imports a hostile folder.
const hostileImport = "CNIBENCH_TEST_HOSTILE_IMPORT"

// TestMain is that process, too.
func TestMain(m *testing.M) {
	format, dir, is := strings.Cut(os.Getenv(hostileImport), ":")
	if !is {
		os.Exit(m.Run())
	}
	maxMemory = 128 << 20
	sum, err := Import(context.Background(), format, dir, filepath.Join(dir, "out"), Options{})
	if err != nil {
		fmt.Println(err)
	} else {
		for _, f := range sum.Faults {
			fmt.Println(f.Text)
		}
	}
}

// file writes one of the folder by what write writes.
func file(t *testing.T, name string, write func(w *bufio.Writer)) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	write(w)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// Whatever a folder holds, an import takes no more memory than its budget and what
// the files take that are parsed at the moment, and says what it left out. The process
// has no more address space than that.
func TestHostileImports(t *testing.T) {
	const limit = 1 << 30 // of a budget of 128 MiB
	tooMuch := "would take more than 128 MiB"
	for _, test := range []struct {
		name, format, want string
		make               func(t *testing.T, dir string)
	}{
		{"sparse series in many files", "statexec", tooMuch, func(t *testing.T, dir string) {
			// Each snapshot gives one value to one of many series: 8 MiB in memory for 100 KiB.
			for n := range 40 {
				file(t, filepath.Join(dir, fmt.Sprintf("%d.prom", n)), func(w *bufio.Writer) {
					for i := range 1000 {
						fmt.Fprintf(w, "statexec_disk_read_bytes_total{id=\"%d\",device=\"d%d\"} 1 %d\n", n, i, 1704067200000+i)
					}
				})
			}
		}},
		{"many folders", "infrabuilder", tooMuch, func(t *testing.T, dir string) {
			for n := range 8_300 {
				if err := os.Mkdir(filepath.Join(dir, strconv.Itoa(n)), 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"many intervals", "infrabuilder", "", func(t *testing.T, dir string) {
			for round := range 3 {
				run := filepath.Join(dir, "calico", strconv.Itoa(round+1))
				file(t, filepath.Join(run, "dts-client.stdout"), func(w *bufio.Writer) {
					fmt.Fprint(w, `{"intervals":[{}`, strings.Repeat(",{}", 2_700_000), `]}`)
				})
			}
		}},
		{"endless lines", "infrabuilder", "over the limit", func(t *testing.T, dir string) {
			for round := range 4 {
				run := filepath.Join(dir, "calico", strconv.Itoa(round+1))
				file(t, filepath.Join(run, "dts.results"), func(w *bufio.Writer) {
					fmt.Fprint(w, "DTS_BW=", strings.Repeat("1", 7<<20))
				})
				file(t, filepath.Join(run, "all.results"), func(w *bufio.Writer) {
					fmt.Fprint(w, strings.Repeat("x", 20<<20))
				})
			}
		}},
		{"many series", "statexec", "more than 50000 series", func(t *testing.T, dir string) {
			for n := range 4 {
				file(t, filepath.Join(dir, fmt.Sprintf("%d.prom", n)), func(w *bufio.Writer) {
					for i := range 300_000 {
						fmt.Fprintf(w, "statexec_disk_read_bytes_total{device=\"d%d\"} 1 1704067200000\n", i)
					}
				})
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			test.make(t, dir)
			text := needs.Within(t, limit, []string{hostileImport + "=" + test.format + ":" + dir, "GOMEMLIMIT=512MiB"})
			if !strings.Contains(text, test.want) {
				t.Errorf("no word of %q: %.600s", test.want, text)
			}
		})
	}
}
