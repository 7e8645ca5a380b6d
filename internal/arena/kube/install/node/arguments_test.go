package node

import (
	"crypto/sha256"
	"fmt"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A node that holds very much can be cleaned: no argument is longer than Linux
// takes, and none of the request is lost.
func TestArguments(t *testing.T) {
	for _, names := range []int{0, 1, 500, 20000} {
		req := Request{Do: DoClean, Keep: State{}}
		for n := range names {
			req.Keep.add("chain", fmt.Sprintf("nat CALI-%x", sha256.Sum256([]byte{byte(n), byte(n >> 8)})))
		}
		arguments, err := Arguments(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := exec.CommandContext(t.Context(), "true", arguments...).Run(); err != nil {
			t.Errorf("%d names: %v", names, err)
		}
		got, err := ParseArguments(arguments)
		if err != nil {
			t.Fatal(err)
		}
		if names == 0 {
			req.Keep = nil
		}
		if diff := cmp.Diff(req, got); diff != "" {
			t.Errorf("%d names: %s", names, diff)
		}
	}
}
