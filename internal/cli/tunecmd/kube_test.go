package tunecmd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// tuneCmd is a subcommand of tune with its flags.
func tuneCmd(t *testing.T, args ...string) *cobra.Command {
	t.Helper()
	c, rest, err := New(someNodes{}).Find(args)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.ParseFlags(rest); err != nil {
		t.Fatal(err)
	}
	return c
}

// someNodes is a cluster of which only the flags matter.
type someNodes struct{}

func (someNodes) AddFlags(c *cobra.Command) {
	for _, name := range tuneKubeFlags {
		if name == "privileged" {
			c.Flags().Bool(name, false, "")
		} else {
			c.Flags().String(name, "", "")
		}
	}
}

func (someNodes) Run(*cobra.Command, []string, string, Compare) error { return nil }

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
