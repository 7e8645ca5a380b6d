package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/cli/exit"
)

// TestHostileNumbers: a run directory whose files give impossible numbers is read or
// refused in bounded memory and time; the numbers of loops and lists come from what there
// is. The bound of time is for a command that would never end.
func TestHostileNumbers(t *testing.T) {
	const (
		bytes   = 3 << 30 // address space, of which the program itself takes 1.5
		seconds = 120
	)
	type object = map[string]any
	for _, test := range []struct {
		name         string
		plan, sample object
		code         int    // of report
		want         string // in what report prints
	}{
		{"planned rounds", object{"rounds": 2147483647}, nil, exit.Failed, "plan.rounds is 2147483647"},
		{"round of a sample", nil, object{"round": 4611686018427387904}, 0, "bad sample (round 4611686018427387904"},
		{"as many rounds as can be", object{"rounds": 10000}, object{"round": 10000}, 0, ""},
		{"numbers of the plan", object{"slice": 1e-300, "lead": 1e300, "together": 2147483647, "until": 1e-300, "max_time": 1e300, "duration": 1e300, "warmup": 1e300}, nil, 0, ""},
		{"numbers of samples", nil, object{"order": 9223372036854775807, "elapsed": 1e308, "metrics": object{"goodput": 1.7e308, "latency_p50": 5e-324},
			"slices": object{"cycles": []int{1, 2147483647, 4611686018427387904, -5}, "metrics": object{"goodput": []float64{1e9, 1e9, 1e9, 1e9}}, "disturbed": []int{9223372036854775807}}}, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			plan := object{"suite": "x", "rounds": 7, "seed": 1, "duration": 1, "warmup": 0,
				"contenders": []object{{"id": "host", "underlay": "switch"}, {"id": "a", "underlay": "switch"}},
				"steps":      []object{{"id": "dts", "summary": "s", "workload": "tcp_stream", "path": "pod"}}}
			for key, v := range test.plan {
				plan[key] = v
			}
			writeJSONLines(t, filepath.Join(dir, "run.json"), object{"schema": "cnibench/run/1", "id": "h", "started": "2026-01-01T00:00:00Z", "arena": "lab", "baseline": "host", "plan": plan})
			var samples []any
			for round := 1; round <= 7; round++ {
				for _, contender := range []string{"host", "a"} {
					s := object{"schema": "cnibench/sample/1", "contender": contender, "underlay": "switch", "kernel": "6.1", "step": "dts", "round": round,
						"workload": "tcp_stream", "path": "pod", "started": "2026-01-01T00:00:00Z", "elapsed": 1, "verdict": "valid", "metrics": object{"goodput": 1e9 + float64(round)}}
					for key, v := range test.sample {
						if key != "round" || round == 7 {
							s[key] = v
						}
					}
					samples = append(samples, s)
				}
			}
			writeJSONLines(t, filepath.Join(dir, "samples.jsonl"), samples...)
			for i, args := range []string{
				"report DIR", "report DIR --format md", "report DIR --format csv", "report DIR --format json", "report DIR --format html -o " + filepath.Join(t.TempDir(), "x.html"),
				"report DIR --format openmetrics", "report DIR --format benchstat", "recommend DIR", "compare DIR DIR", "verify DIR",
			} {
				ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
				out, err := exec.CommandContext(ctx, "sh", "-c", fmt.Sprintf("ulimit -v %d; exec %s %s", bytes>>10, program, strings.ReplaceAll(args, "DIR", dir))).CombinedOutput()
				late := ctx.Err()
				cancel()
				switch code := exitCode(err); {
				case late != nil:
					t.Errorf("%s takes more than %d s", args, seconds)
				case code != 0 && code != exit.Failed && code != exit.Gate:
					t.Errorf("%s ends with %d: %.300s", args, code, out)
				case i == 0 && (code != test.code || !strings.Contains(string(out), test.want)):
					t.Errorf("%s ends with %d, want %d, and without %q: %.300s", args, code, test.code, test.want, out)
				}
			}
			exploreHostile(t, dir, bytes>>10, seconds*time.Second)
		})
	}
}

// exploreHostile shows the run directory as a page in bounded memory (KiB) and time, and ends.
func exploreHostile(t *testing.T, dir string, memory int, maximum time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maximum)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", "-c", fmt.Sprintf("ulimit -v %d; exec %s explore %s", memory, program, dir))
	var said strings.Builder
	c.Stderr = &said
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	address, _ := bufio.NewReader(out).ReadString('\n')
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSpace(address), nil)
	if err == nil {
		var answer *http.Response
		if answer, err = http.DefaultClient.Do(request); err == nil {
			var page []byte
			page, err = io.ReadAll(answer.Body)
			err = errors.Join(err, answer.Body.Close())
			if len(page) == 0 {
				t.Errorf("explore: %s without a word", answer.Status)
			}
		}
	}
	if err != nil {
		t.Errorf("explore: %v", err)
	}
	err = errors.Join(c.Process.Signal(os.Interrupt), c.Wait())
	if ctx.Err() != nil || exitCode(err) > exit.Gate {
		t.Errorf("explore ends with %v: %.300s", err, said.String())
	}
}

func exitCode(err error) int {
	var ended *exec.ExitError
	if err == nil {
		return 0
	} else if errors.As(err, &ended) {
		return ended.ExitCode()
	}
	return -1
}

func writeJSONLines(t *testing.T, file string, lines ...any) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, line := range lines {
		if err := json.NewEncoder(f).Encode(line); err != nil {
			t.Fatal(err)
		}
	}
}
