package cli

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/cli/tunecmd"
)

func TestShowNodes(t *testing.T) {
	same := []kube.OnMachine{{Node: "a", Stdout: "one\n"}, {Node: "b", Stdout: "two\n"}, {Node: "c", Stdout: "one\n"}}
	for name, test := range map[string]struct {
		args           []string
		said           []kube.OnMachine
		code           int
		stdout, stderr string
		err            string
	}{
		"the same together": {[]string{"plan"}, same, exit.Done, "nodes a, c\n\none\n\nnode b\n\ntwo\n", "", ""},
		"a file":            {[]string{"plan", "--export", "udev"}, same, exit.Done, "# nodes a, c\none\n\n# node b\ntwo\n", "", ""},
		"json": {
			[]string{"status", "--json"},
			[]kube.OnMachine{{Node: "a", Stdout: "{\"x\": 1}\n"}, {Node: "b", Code: 1, Stderr: "cnibench: no\n"}},
			exit.Failed, "{\n  \"nodes\": {\n    \"a\": {\n      \"x\": 1\n    }\n  },\n  \"schema\": \"cnibench/tune-nodes/1\"\n}\n", "", "node b: no",
		},
		"notes, and errors of several lines": {
			[]string{"apply"},
			[]kube.OnMachine{{Node: "a", Stderr: "left out: x\n"}, {Node: "b", Stdout: "done\n", Stderr: "left out: y\ncnibench: setting z: no\nsetting u: no\n", Code: 1}},
			exit.Failed, "node b\n\ndone\n", "node a: left out: x\nnode b: left out: y\n", "node b: setting z: no\nsetting u: no",
		},
		"refused on one": {
			[]string{"apply"}, []kube.OnMachine{{Node: "a", Code: 3, Stderr: "cnibench: no\n"}, {Node: "b"}},
			exit.Unsupported, "", "", "node a: no",
		},
		"the same refusal": {
			[]string{"apply"}, []kube.OnMachine{{Node: "a", Code: 3, Stderr: "left out: x\ncnibench: no\n"}, {Node: "b", Code: 3, Stderr: "left out: x\ncnibench: no\n"}},
			exit.Unsupported, "", "nodes a, b: left out: x\n", "nodes a, b: no",
		},
		"half done is worse than refused": {
			[]string{"apply"}, []kube.OnMachine{{Node: "a", Code: 3, Stderr: "cnibench: no\n"}, {Node: "b", Code: 137}, {Node: "c", Code: 2, Stderr: "cnibench: what?\n"}},
			exit.Failed, "", "", "node a: no\nnode b: exit code 137\nnode c: what?",
		},
		"a node that was lost": {
			[]string{"apply"}, []kube.OnMachine{{Node: "a", Stdout: "some\n", Err: errors.New("gone")}},
			exit.Failed, "node a\n\nsome\n", "", "node a: gone; `next` says",
		},
		"what could move the cursor": {
			[]string{"apply"}, []kube.OnMachine{{Node: "a", Stdout: "o\x1b[2J\tx\n", Stderr: "left \x9b out\rx\n"}},
			exit.Done, "node a\n\no?[2J\tx\n", "node a: left ? out x\n", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, rest, err := tunecmd.New(&clusterNodes{}).Find(test.args)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.ParseFlags(rest); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			c.SetOut(&stdout)
			c.SetErr(&stderr)
			err = showNodes(c, test.said, "`next` says", nil)
			code, text := exit.Done, ""
			if err != nil {
				code, text = exit.Code(err), err.Error()
			}
			if code != test.code || text != test.err {
				t.Errorf("exit code %d, want %d; %q, want %q", code, test.code, text, test.err)
			}
			if diff := cmp.Diff(test.stdout, stdout.String()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.stderr, stderr.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
