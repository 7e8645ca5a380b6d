package tunecmd

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/arena/kube"
	"github.com/cnibench/cnibench/internal/cli/exit"
)

// tuneCmd is a subcommand of tune with its flags.
func tuneCmd(t *testing.T, args ...string) *cobra.Command {
	t.Helper()
	c, rest, err := New(&cobra.Command{Use: "bench"}).Find(args)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.ParseFlags(rest); err != nil {
		t.Fatal(err)
	}
	return c
}

// A node is asked the same, but for where the cluster is.
func TestOnNodeArgs(t *testing.T) {
	c := tuneCmd(t, "plan", "--arena", "kube", "--privileged", "--image", "i", "--pull-policy", "Never", "--kubeconfig", "f", "--context", "c", "--nodes", "a,b",
		"--profile", "latency", "--set", "rfs.flows=1", "--set", "notrack.ports=80,443", "--sysctl", "net.ipv4.tcp_rmem=4096,4096,4096", "--nic", "eth0,eth1", "--json", "rps")
	want := []string{"tune", "plan", "--arena=node", "--json=true", "--nic=eth0", "--nic=eth1", "--profile=latency",
		"--set=rfs.flows=1", "--set=notrack.ports=80,443", "--sysctl=net.ipv4.tcp_rmem=4096,4096,4096",
		"--take-back-with=cnibench tune revert --arena kube --kubeconfig f --context c --image i --pull-policy Never --nodes a,b --privileged", "--", "rps"}
	if diff := cmp.Diff(want, onNodeArgs(c, c.Flags().Args())); diff != "" {
		t.Error(diff)
	}
}

// What is to be pasted asks the nodes that were asked.
func TestSameNodes(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"all that is usual": {[]string{"--privileged"}, "--privileged"},
		"a cluster of many": {
			[]string{"--privileged", "--nodes", "a, b", "--context", "arn:aws:eks:eu-1:1:cluster/x", "--kubeconfig", "my/it's mine", "--image", "r.example:5000/c@sha256:0"},
			`--kubeconfig 'my/it'\''s mine' --context arn:aws:eks:eu-1:1:cluster/x --image r.example:5000/c@sha256:0 --nodes 'a, b' --privileged`,
		},
	} {
		c := tuneCmd(t, append([]string{"apply", "--arena", "kube", "rps"}, test.args...)...)
		if got, want := sameNodes(c, "revert"), "cnibench tune revert --arena kube "+test.want; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

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
			exit.Failed, "node a\n\nsome\n", "", "node a: gone; `cnibench tune status --arena kube` says what is applied",
		},
		"what could move the cursor": {
			[]string{"apply"}, []kube.OnMachine{{Node: "a", Stdout: "o\x1b[2J\tx\n", Stderr: "left \x9b out\rx\n"}},
			exit.Done, "node a\n\no?[2J\tx\n", "node a: left ? out x\n", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := tuneCmd(t, test.args...)
			var stdout, stderr bytes.Buffer
			c.SetOut(&stdout)
			c.SetErr(&stderr)
			err := showNodes(c, test.said)
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
