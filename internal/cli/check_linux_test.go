package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/run"
)

// checkJSON runs `cnibench check … --json` and returns what it printed and its
// exit code.
func checkJSON(t *testing.T, args ...string) (run.CheckOutput, int) {
	t.Helper()
	var stderr bytes.Buffer
	c := exec.Command(program, append(append([]string{"check"}, args...), "--json")...)
	c.Stderr = &stderr
	raw, err := c.Output()
	code := 0
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		code = ended.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	validate(t, "check-1.schema.json", raw)
	var out run.CheckOutput
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	return out, code
}

func TestCheck(t *testing.T) {
	unchanged(t)
	out, code := checkJSON(t, "all", "--contenders", "host,flannel-vxlan")
	if code != exit.Done || len(out.Results) != 8 {
		t.Errorf("exit code %d, %d results, want 0 and 8: two contenders, mtu at 1500 and 9000, encryption and policy once", code, len(out.Results))
	}
	for _, r := range out.Results {
		want := check.Pass
		if r.Check == "policy" { // nobody in the lab enforces any
			want = check.Skip
		}
		if r.Verdict() != want || r.Error != "" {
			t.Errorf("%+v", r)
		}
	}
	if m := out.Matrix; len(m.Rows) != 2 || len(m.Rows[0].Cells) != len(m.Columns) || m.Columns[0] != (check.Column{Check: "mtu", Name: "size"}) {
		t.Errorf("matrix %+v", m)
	}
}

// A wrong MTU ends with 4, on a table that names it and says what to do.
func TestCheckFindsWrongMTU(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "wrong.conf")
	text := `{"cniVersion":"1.0.0","name":"wrong","type":"bridge","bridge":"cni0","mtu":1500,"isDefaultGateway":true,
		"ipam":{"type":"host-local","ranges":[[{"subnet":"usePodCidr"}]]}}`
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"mtu", "--mtu", "1500", "--cni-conf", conf, "--cni-transport", "vxlan", "--contenders", "custom"}
	if out, code := checkJSON(t, args...); code != exit.Gate || len(out.Results) != 1 || out.Results[0].Verdict() != "fail" {
		t.Errorf("exit code %d, %+v", code, out.Results)
	}
	table, err := exec.Command(program, append([]string{"check"}, args...)...).Output()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != exit.Gate {
		t.Errorf("%v, want exit code 4", err)
	}
	words := strings.Join(strings.Fields(string(table)), " ")
	for _, want := range []string{"custom", "exceeds", "up to 1500", "MTU to 1450"} {
		if !strings.Contains(words, want) {
			t.Errorf("the table does not say %q:\n%s", want, table)
		}
	}
}

// A contender that can't run here and was asked for by name ends with 3, after
// the others were checked.
func TestCheckUnsupported(t *testing.T) {
	out, code := checkJSON(t, "mtu", "--mtu", "1500", "--contenders", "host,tungsten-fabric")
	if code != exit.Unsupported || len(out.Results) != 1 || len(out.Unsupported) != 1 {
		t.Errorf("exit code %d, %+v", code, out)
	}
}
