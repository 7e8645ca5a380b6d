//go:build linux

// Program testbed starts and ends a Kubernetes cluster on this machine for
// cnibench's end-to-end tests: one file, the command line. Next:
// internal/bed/bed.go, then products/products.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/testbed/internal/bed"
	"github.com/cnibench/cnibench/testbed/products"
)

func main() {
	if len(os.Args) > 1 {
		internalMain(os.Args[1:])
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	err := newRoot().ExecuteContext(ctx)
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && exit.ExitCode() > 0: // of a command that was run for the user
		os.Exit(exit.ExitCode())
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "testbed: interrupted")
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "testbed:", err)
		os.Exit(1)
	}
}

// internalMain is what this program is within a test bed; it never returns
// if it is that.
func internalMain(args []string) {
	var err error
	switch args[0] {
	case "internal-supervisor":
		err = bed.Supervise(args[1])
	case "internal-node":
		err = bed.EnterNode()
	case "internal-node-run":
		err = bed.RunNode()
	default:
		return
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func newRoot() *cobra.Command {
	var dir string
	root := &cobra.Command{
		Use:           "testbed",
		Short:         "A Kubernetes cluster on this machine, for tests (docs/dev/testbed.md)",
		SilenceUsage:  true,
		SilenceErrors: true,
		// --dir before kubectl is ours, what follows is kubectl's.
		TraverseChildren: true,
	}
	root.PersistentFlags().StringVar(&dir, "dir", bed.DefaultDir, "state folder; each is a test bed of its own")
	var open opener = func() (*bed.Bed, error) { return bed.Open(dir) }
	root.AddCommand(
		newUp(&dir), newBuild(),
		&cobra.Command{
			Use:   "down",
			Short: "end the test bed and remove what it was made of; fine without one, and after any crash",
			Args:  cobra.NoArgs,
			RunE:  func(cmd *cobra.Command, _ []string) error { return bed.Down(cmd.Context(), dir) },
		},
		&cobra.Command{
			Use:   "status",
			Short: "what runs",
			Args:  cobra.NoArgs,
			RunE: open.with(func(cmd *cobra.Command, b *bed.Bed, _ []string) error {
				return printStatus(cmd.Context(), cmd.OutOrStdout(), b)
			}),
		},
		&cobra.Command{
			Use:   "kubeconfig",
			Short: "print the path of the kubeconfig file, which is good anywhere on this machine",
			Args:  cobra.NoArgs,
			RunE: open.with(func(cmd *cobra.Command, b *bed.Bed, _ []string) error {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), b.Kubeconfig())
				return err
			}),
		},
		newKubectl(open), newExec(open), newNodeExec(open), newImage(open),
		newInstall("install", "put a pod network on the cluster", open, true),
		newInstall("uninstall", "take a pod network off again; pods that use it must be gone", open, false),
		newMirror(open),
		newKubeProxy(open), newPauseAPI(open),
		newNode("stop-node", "kill everything in a node at once, as a power failure would", open, (*bed.Bed).StopNode),
		newNode("start-node", "start a stopped node", open, (*bed.Bed).StartNode),
	)
	return root
}

// opener finds the running test bed.
type opener func() (*bed.Bed, error)

// with runs a command on the running test bed.
func (open opener) with(do func(cmd *cobra.Command, b *bed.Bed, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		b, err := open()
		if err != nil {
			return err
		}
		return do(cmd, b, args)
	}
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func newUp(dir *string) *cobra.Command {
	var options bed.Options
	proxies, cnis := bed.Modes()
	up := &cobra.Command{
		Use:   "up",
		Short: "start a test bed; the first time builds Kubernetes, which takes some minutes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			begin := time.Now()
			b, err := bed.Up(cmd.Context(), *dir, options, say)
			if err != nil {
				return err
			}
			say("up after %s; KUBECONFIG is", time.Since(begin).Round(time.Second))
			fmt.Fprintln(cmd.OutOrStdout(), b.Kubeconfig())
			return nil
		},
	}
	up.Flags().IntVar(&options.Nodes, "nodes", 3, "how many nodes")
	up.Flags().StringVar(&options.KubeProxy, "kube-proxy", "iptables", "mode of kube-proxy: "+strings.Join(proxies, ", "))
	up.Flags().StringVar(&options.CNI, "cni", "none", "pod network: routes (the standard plugins) or none; testbed install has more ("+strings.Join(cnis, ", ")+")")
	up.Flags().IntVar(&options.Slow, "slow", bed.SlowHere(), "how many times slower than usual this machine is: every limit of time is so many times longer")
	up.Flags().BoolVar(&options.Keep, "keep", false, "leave the logs of a test bed that does not come up; remove them with testbed down")
	return up
}

func newBuild() *cobra.Command {
	return &cobra.Command{
		Use:       "build [NAME…]",
		Short:     "build what up needs, and the named pod networks, ahead of their use; usual is those that are tested with every change; what is built is kept",
		Args:      cobra.OnlyValidArgs,
		ValidArgs: append(products.Names(), usual),
		RunE: func(cmd *cobra.Command, names []string) error {
			if i := slices.Index(names, usual); i >= 0 {
				names = slices.Replace(slices.Clone(names), i, i+1, products.Usual()...)
			}
			_, _, err := bed.Build(cmd.Context(), say)
			for _, name := range names {
				if err == nil {
					_, err = products.Images(cmd.Context(), name, say)
				}
			}
			return err
		},
	}
}

// usual is a name for the products that are tested with every change.
const usual = "usual"

// orUsual is the named products, or those that are built with every change.
func orUsual(names []string) []string {
	if len(names) == 0 {
		return products.Usual()
	}
	return names
}

func printStatus(ctx context.Context, out io.Writer, b *bed.Bed) error {
	status, err := b.Status(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "state       %s\nkubeconfig  %s\nAPI server  %s here, https://%s inside\nlogs        %s\nkube-proxy  %s\nroutes      %v\n",
		b.Dir, b.Kubeconfig(), b.API(), b.ControlPlane(), b.Logs(), status.KubeProxy, status.Routes)
	for _, n := range b.Nodes() {
		what := "running"
		if status.NodePIDs[n.Name] == 0 {
			what = "stopped"
		}
		fmt.Fprintf(out, "%-11s %-12s pods %-15s %s\n", n.Name, n.Addr, n.PodCIDR, what)
	}
	return nil
}

// run runs a command for the user, on this terminal; its exit code becomes ours.
func run(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd.Run()
}

func newKubectl(open opener) *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl ARGS…",
		Short:              "kubectl of the cluster's version, as its administrator",
		DisableFlagParsing: true,
		RunE: open.with(func(cmd *cobra.Command, b *bed.Bed, args []string) error {
			return run(exec.CommandContext(cmd.Context(), b.Programs()+"/kubectl", append([]string{"--kubeconfig", b.Kubeconfig()}, args...)...))
		}),
	}
}

func newExec(open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "exec -- COMMAND…",
		Short: "run a command in the control plane's network, from where nodes and pods can be reached",
		Args:  cobra.MinimumNArgs(1),
		RunE: open.with(func(cmd *cobra.Command, b *bed.Bed, args []string) error {
			return run(b.Command(cmd.Context(), args...))
		}),
	}
}

func newNodeExec(open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "node-exec NODE -- COMMAND…",
		Short: "run a command in a node, as root",
		Args:  cobra.MinimumNArgs(2),
		RunE: open.with(func(cmd *cobra.Command, b *bed.Bed, args []string) error {
			command, err := b.NodeCommand(cmd.Context(), args[0], args[1:]...)
			if err != nil {
				return err
			}
			return run(command)
		}),
	}
}

func newImage(open opener) *cobra.Command {
	image := &cobra.Command{Use: "image", Short: "images of containers"}
	image.AddCommand(&cobra.Command{
		Use:   "import TARBALL…",
		Short: "import image tarballs (docker-archive or OCI) on all nodes",
		Args:  cobra.MinimumNArgs(1),
		RunE: open.with(func(cmd *cobra.Command, b *bed.Bed, args []string) error {
			return importAll(cmd.Context(), b, args)
		}),
	})
	return image
}

// routes is the pod network of package bed; the others are products.
const routes = "routes"

func newInstall(verb, short string, open opener, on bool) *cobra.Command {
	names := append([]string{routes}, products.Names()...)
	return &cobra.Command{
		Use:       verb + " NAME",
		Short:     short + ": " + strings.Join(names, ", "),
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := open()
			switch {
			case err != nil:
				return err
			case args[0] == routes && on:
				return addRoutes(cmd.Context(), b)
			case args[0] == routes:
				return b.SetRoutes(cmd.Context(), false)
			case on:
				return products.Install(cmd.Context(), b, args[0], say)
			}
			return products.Uninstall(cmd.Context(), b, args[0], say)
		},
	}
}

// nodePatience is how long nodes of a usual machine may take to see their pod network.
const nodePatience = 2 * time.Minute

func addRoutes(ctx context.Context, b *bed.Bed) error {
	if err := b.SetRoutes(ctx, true); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, b.Limit(nodePatience))
	defer cancel()
	return products.WaitNodes(ctx, b)
}

func newMirror(open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "mirror FOLDER [NAME…]",
		Short: "write charts and manifests of the named pod networks or the usual ones for cnibench run --install --mirror FOLDER; if a test bed is up, import their images and prepare its nodes",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted := orUsual(args[1:])
			if err := products.Mirror(cmd.Context(), args[0], wanted, say); err != nil {
				return err
			}
			b, err := open()
			if errors.Is(err, bed.ErrDown) {
				return nil
			}
			if err != nil {
				return err
			}
			for _, name := range wanted { // several products have one image, which is imported once
				if err := products.Prepare(cmd.Context(), b, name, say); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func importAll(ctx context.Context, b *bed.Bed, tarballs []string) error {
	for _, tarball := range tarballs {
		if err := b.Import(ctx, tarball); err != nil {
			return err
		}
	}
	return nil
}

func newKubeProxy(open opener) *cobra.Command {
	return &cobra.Command{
		Use:       "kube-proxy on|off",
		Short:     "start kube-proxy on every node, or end it and remove its rules",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"on", "off"},
		RunE: open.with(func(cmd *cobra.Command, b *bed.Bed, args []string) error {
			return b.SetKubeProxy(cmd.Context(), args[0] == "on")
		}),
	}
}

func newNode(name, short string, open opener, do func(*bed.Bed, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use:   name + " NODE",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: open.with(func(cmd *cobra.Command, b *bed.Bed, args []string) error {
			return do(b, cmd.Context(), args[0])
		}),
	}
}

func newPauseAPI(open opener) *cobra.Command {
	var kill bool
	pause := &cobra.Command{
		Use:   "pause-api DURATION",
		Short: "let the API server hang for a while, in the background",
		Args:  cobra.ExactArgs(1),
		RunE: open.with(func(cmd *cobra.Command, b *bed.Bed, args []string) error {
			wait, err := time.ParseDuration(args[0])
			if err != nil {
				return err
			}
			return b.PauseAPI(cmd.Context(), wait, kill)
		}),
	}
	pause.Flags().BoolVar(&kill, "kill", false, "instead, kill it and start it again after DURATION")
	return pause
}
