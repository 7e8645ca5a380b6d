package result_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// These tests start this program again with a role.
const roleVar = "CNIBENCH_RESULT_TEST_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(m.Run())
	case "seal":
		err = sealUntilKilled(os.Args[1])
	case "full disk":
		err = fillDisk(os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func role(t *testing.T, name, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], dir)
	cmd.Env = append(os.Environ(), roleVar+"="+name)
	cmd.Stderr = os.Stderr
	return cmd
}

// Whatever a process that is killed had acknowledged is on the disk, and the
// run goes on from there.
func TestKilledProcessesLoseNothing(t *testing.T) {
	dir, s := create(t)
	s.Close()
	acknowledged := 0
	for kill := range 5 {
		cmd := role(t, "seal", dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if acknowledged, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatal(err)
			}
			if n == kill { // somewhere in the next sample
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait()
		got := load(t, dir)
		if len(got.Samples) < acknowledged {
			t.Fatalf("%d samples acknowledged, %d loaded: %v", acknowledged, len(got.Samples), got.Faults)
		}
	}
	r := load(t, dir)
	for i, s := range r.Samples {
		if s.Round != i+1 {
			t.Fatalf("sample %d is of round %d", i, s.Round)
		}
	}
	t.Logf("%d samples, %d half-written ones", len(r.Samples), len(r.Faults))
}

// sealUntilKilled is what the test above starts this program for: it says on
// standard output which sample is sealed.
func sealUntilKilled(dir string) error {
	s, r, err := result.Resume(dir)
	if err != nil {
		return err
	}
	for round := len(r.Samples) + 1; ; round++ {
		sample := aSample("host", "dts", round)
		sample.Notes[0].Text = strings.Repeat("long enough to be cut ", 5000)
		if err := s.Seal(sample); err != nil {
			return err
		}
		fmt.Println(round)
	}
}

func TestFullDisk(t *testing.T) {
	cmd := role(t, "full disk", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if err := cmd.Start(); err != nil {
		needs.Missing(t, fmt.Sprintf("no user namespaces here (%v); allow them with: sysctl -w user.max_user_namespaces=10000", err))
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// fillDisk runs in namespaces of its own.
func fillDisk(dir string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "padding"), make([]byte, 64<<10), 0o644); err != nil {
		return err
	}
	dir = filepath.Join(dir, "run")
	s, err := result.Create(dir, aRun())
	if err != nil {
		return err
	}
	n, full := 0, error(nil)
	for full == nil {
		n++
		full = s.Seal(filler(n))
	}
	if !errors.Is(full, result.ErrNoSpace) || !errors.Is(full, syscall.ENOSPC) {
		return fmt.Errorf("want ErrNoSpace and ENOSPC: %w", full)
	}
	if err := expect(dir, n-1); err != nil {
		return err
	}
	report := func(w io.Writer) error { _, err := w.Write(make([]byte, 256<<10)); return err }
	if err := s.WriteFile("report.html", report); !errors.Is(err, result.ErrNoSpace) {
		return fmt.Errorf("report: want ErrNoSpace: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "report.html.tmp")); err == nil {
		return errors.New("half a report stays")
	}
	if err := otherRun(filepath.Join(filepath.Dir(dir), "other")); err != nil {
		return err
	}
	// With room again the same store goes on, with the sample that failed.
	if err := os.Remove(filepath.Join(filepath.Dir(dir), "padding")); err != nil {
		return err
	}
	if err := s.Seal(filler(n)); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	return expect(dir, n)
}

// filler takes space in a raw folder and in the samples file.
func filler(round int) *result.Sample {
	s := aSample("host", "dts", round)
	s.Notes[0].Text = string(make([]byte, 1500)) // a NUL takes six bytes in JSON
	s.Histograms = map[string]*hdrhistogram.Histogram{"latency": histogram(int64(round))}
	return s
}

// otherRun tries to start a run on the full disk.
func otherRun(dir string) error {
	run := aRun()
	run.Environment["sysctl.net"] = string(make([]byte, 64<<10))
	if _, err := result.Create(dir, run); !errors.Is(err, result.ErrNoSpace) {
		return fmt.Errorf("another run: want ErrNoSpace: %w", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("another run left its folder: %w", err)
	}
	return nil
}

func expect(dir string, samples int) error {
	r, err := result.Load(dir)
	if err != nil {
		return err
	}
	if len(r.Samples) != samples || len(r.Faults) > 0 {
		return fmt.Errorf("%d samples, want %d; faults %v", len(r.Samples), samples, r.Faults)
	}
	return nil
}
