package deploy

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
)

// A Job that holds its pod hands the signal on to cnibench, waits for it, and
// ends with its exit code.
func TestHold(t *testing.T) {
	pause, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	for name, test := range map[string]struct {
		program string // cnibench, a shell script
		seconds int
		stop    string // what has been noted when the signal comes; "": none comes
		code    int
		notes   string
	}{
		"ended by itself": {"note up; exit 3", 1, "", 3, "up\nhold 1\n"},
		"stopped during the run": {
			`trap 'note cleaning; "$pause" 0.2; note clean; exit 7' TERM; note up; while :; do "$pause" 0.02; done`, 600, "up\n", 7, "up\ncleaning\nclean\n",
		},
		"stopped as it ends":     {`trap '' TERM; note up; "$pause" 0.5; exit 5`, 600, "up\n", 5, "up\n"},
		"stopped while it holds": {"note up; exit 4", 600, "up\nhold 600\n", 4, "up\nhold 600\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for program, does := range map[string]string{
				"cnibench": `[ "$#:$2" = "2:two words" ] || exit 9; ` + test.program,
				"sleep":    `note "hold $1"; exec "$pause" "$1"`,
			} {
				script := "#!/bin/sh\nnote() { echo \"$1\" >> notes; }\n" + does + "\n"
				if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			argv := append(holding(t, test.seconds), "run", "two words")
			cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "pause="+pause, "PATH="+dir+":"+os.Getenv("PATH"))
			var said strings.Builder
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			notes := func() string {
				b, _ := os.ReadFile(filepath.Join(dir, "notes"))
				return string(b)
			}
			// Only a hold that nothing ends lasts longer.
			end := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			defer end.Stop()
			if test.stop != "" {
				for until := time.Now().Add(time.Minute); notes() != test.stop && time.Now().Before(until); {
					time.Sleep(10 * time.Millisecond)
				}
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Error(err)
				}
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != test.code {
				t.Errorf("%v, want exit code %d: %s", err, test.code, said.String())
			}
			if diff := cmp.Diff(test.notes, notes()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// holding is the command of a Job whose pod stays for those seconds.
func holding(t *testing.T, seconds int) []string {
	t.Helper()
	var job batchv1.Job
	read(t, render(t, map[string]any{"holdSeconds": seconds})["job.yaml"], &job)
	return job.Spec.Template.Spec.Containers[0].Command
}
