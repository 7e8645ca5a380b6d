package needs

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// ProgramEnv is set by make test: the program as make has built it.
const ProgramEnv = "CNIBENCH_TEST_PROGRAM"

// Program puts this module's own program into the folder and returns its path: a
// copy of the one that make has built, else it builds one, which takes seconds.
func Program(dir string) (string, error) {
	path := filepath.Join(dir, "cnibench")
	if made := os.Getenv(ProgramEnv); made != "" {
		return path, copyProgram(made, path)
	}
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, "github.com/cnibench/cnibench")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", build, err, out)
	}
	return path, nil
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("%s: %w", ProgramEnv, err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return cmp.Or(err, out.Close())
}
