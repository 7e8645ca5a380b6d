package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// program is this module's binary, built once for all tests of the package.
var program string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "cnibench-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	// Ordinary users run it too.
	if err := os.Chmod(dir, 0o755); err != nil {
		panic(err)
	}
	if program, err = needs.Program(dir); err != nil {
		panic(err)
	}
	return m.Run()
}

// TestScript runs the command lines under testdata/script. Exit codes are
// checked by the command `code N`.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("BIN", filepath.Dir(program))
			e.Setenv("PATH", filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// code N COMMAND…: the command ends with exit code N.
			"code": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: code N COMMAND...")
				}
				err := ts.Exec(args[1], args[2:]...)
				var ended *exec.ExitError
				got := "0"
				switch {
				case errors.As(err, &ended):
					got = strconv.Itoa(ended.ExitCode())
				case err != nil:
					ts.Fatalf("%v", err)
				}
				if got != args[0] {
					ts.Fatalf("exit code %s, want %s", got, args[0])
				}
			},
		},
	})
}
