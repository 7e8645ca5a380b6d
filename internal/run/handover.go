package run

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/cnibench/cnibench/internal/cli/exit"
)

// RequestFlag is the flag of `cnibench run` whose value is the whole request, as
// JSON. The process that leads a run starts this program with this flag alone in
// the lab's container or in a guest. The started process answers with its run
// directory and an exit code of package exit. If it can measure no contender, it
// writes a run without contenders, which holds the reasons, and ends with
// exit.Unsupported.
const RequestFlag = "request"

// handOver returns the arguments with which another process of this program
// carries the request out.
func (f *Request) handOver() ([]string, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("hand the request over: %w", err)
	}
	return []string{"run", "--" + RequestFlag + "=" + string(text)}, nil
}

// Accept replaces the request by the one that was handed over as text.
func (f *Request) Accept(text string) error {
	given := Request{Set: f.Set, Stdout: f.Stdout, Tool: f.Tool}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&given); err != nil {
		return exit.Usage("--%s: %v; cnibench itself sets this flag", RequestFlag, err)
	}
	*f = given
	f.accepted = true
	return nil
}
