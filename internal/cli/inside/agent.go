// Package inside has the commands that other commands start at an endpoint, such as a pod:
// the agent, the environment of a result, one namespace's settings. The load engine's are
// in loadcmd. The program for pods has these commands and no others, so that this package
// imports no arena. Next: agent.go.
package inside

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena/kube/install/node"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/selftest/plant"
	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/unit"
)

// Agent is the side of cnibench inside an endpoint; other commands start it and speak with
// it on its standard input and output. version is this program's.
func Agent(version string) *cobra.Command {
	var scope string
	var pairs []string
	cmd := &cobra.Command{
		Use:    "agent [--scope node|pod] [--label k=v]",
		Short:  "Record, echo and probe at an endpoint, asked in JSON lines on stdin",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			labels := make(map[string]string, len(pairs))
			for _, pair := range pairs {
				name, value, ok := strings.Cut(pair, "=")
				if !ok {
					return fmt.Errorf("--label %q: want NAME=VALUE", pair)
				}
				labels[name] = value
			}
			return agent.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), sysmon.Scope(scope), labels)
		},
	}
	cmd.AddCommand(newAgentExecCmd(), newAgentIdleCmd(), newAgentRenewCmd(), newAgentHoldCmd(), newAgentHaveCmd(version), newAgentPlantCmd(), newAgentNodeCmd(), newAgentOnNodeCmd())
	cmd.Flags().StringVar(&scope, "scope", string(sysmon.ScopeNode), "what to record: node, or pod for its network namespace only")
	cmd.Flags().StringArrayVar(&pairs, "label", nil, "label of the recordings, as NAME=VALUE")
	return cmd
}

// newAgentPlantCmd plants a fault of the self-test in the namespace that it runs in.
func newAgentPlantCmd() *cobra.Command {
	rate := 0.0
	cmd := &cobra.Command{
		Use:   "plant FAULT ADDRESS",
		Short: "Plant a fault for the self-test at the link with that address",
		Args:  cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			at, err := netip.ParseAddr(args[1])
			if err != nil {
				return err
			}
			return plant.Plant(plant.Fault(args[0]), at, unit.BitRate(rate))
		},
	}
	cmd.Flags().Float64Var(&rate, "rate", 0, "bit/s of a capped link")
	return cmd
}

// newAgentExecCmd runs one command in a pod for whoever is at the other end of
// the exec stream.
func newAgentExecCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "exec",
		Short: "Run the command that standard input orders, until its end or that of the stream",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return agent.ServeExec(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// newAgentIdleCmd is the first process of a pod.
func newAgentIdleCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "idle",
		Short: "Keep a pod alive until SIGTERM or until its run gives no sign any more, ending orphans",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return agent.Idle(cmd.Context()) },
	}
}

// newAgentRenewCmd tells the first process of a pod that its run is under way.
func newAgentRenewCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "renew",
		Short: "Renew the sign that keeps the pod alive for each byte of standard input",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return agent.Renew(cmd.InOrStdin(), agent.Sign) },
	}
}

// newAgentHoldCmd holds what an agent tries.
func newAgentHoldCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "hold",
		Short: "Make the changes that standard input orders, and take them back when it ends or after a while",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return agent.Hold(cmd.InOrStdin(), cmd.OutOrStdout()) },
	}
}

// newAgentHaveCmd says what an image lacks.
func newAgentHaveCmd(version string) *cobra.Command {
	return &cobra.Command{
		Use:   "have PROGRAM…",
		Short: "Print this program's version and digest, and which of the programs are missing, as JSON",
		RunE: func(cmd *cobra.Command, programs []string) error {
			digest, err := ownDigest()
			if err != nil {
				return err
			}
			have := agent.Have{Version: version, SHA256: digest, Missing: []string{}}
			for _, name := range programs {
				if host.Have(name) != nil {
					have.Missing = append(have.Missing, name)
				}
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(have)
		},
	}
}

// newAgentNodeCmd is the installer's side on a node of a cluster.
func newAgentNodeCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "node",
		Short:  "Read or clean what pod networks leave on this node, as standard input asks",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return node.Run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// newAgentOnNodeCmd is this program among a node's own files and programs; a privileged
// pod starts it.
func newAgentOnNodeCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "on-node -- ARGUMENT…",
		Short:  "Run this program with those arguments in the mount namespace of the pod's node",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),
		RunE:   func(_ *cobra.Command, args []string) error { return node.Exec(args...) },
	}
}

// ownDigest is the SHA-256 of this program.
func ownDigest() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(self)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
