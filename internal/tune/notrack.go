package tune

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/linux"
)

// notrack exempts ports from connection tracking.
var notrack = Setting{
	Name:    "notrack",
	Summary: "no connection tracking for the packets of given ports",
	Why:     "tracking costs a look-up a packet, and a table that can fill up",
	Studies: []string{"2016"},
	Source:  "nft(8), notrack; a table of its own, cnibench_notrack, that revert deletes",
	Cost:    "these packets are not translated: no Services, no masquerading, and firewall rules on connection state do not see them",
	Avoid:   "for ports that Services, NodePorts or egress NAT use",
	Scope:   ScopeNamespace,
	Params:  []Param{{"ports", "80", "ports of the servers, TCP and UDP: 80,5201-5210"}},
	Plan: func(f *Facts, p Params) (Proposal, error) {
		ports, err := parsePorts(p["ports"])
		if err != nil {
			return Proposal{}, fmt.Errorf("notrack.ports: %w", err)
		}
		from, err := f.m.notrackPorts(f.ctx)
		if missing(err) {
			return Proposal{}, &NotApplicable{Reason: "nft is not installed", Remedy: host.ThisDistribution().Remedy("nft")}
		}
		if err != nil {
			return Proposal{}, notApplicable("nft does not work here: %v", err)
		}
		return Proposal{Changes: []Change{{Place{Notrack, "ports"}, from, linux.FormatCPUs(ports)}}}, nil
	},
}

const notrackTable = "cnibench_notrack"

// notrackPorts returns the ports of the table's rules, or "none".
func (m *Machine) notrackPorts(ctx context.Context) (string, error) {
	tables, err := m.run(ctx, "", "nft", "list", "tables")
	if err != nil {
		return "", err
	}
	if !slices.Contains(strings.Split(tables, "\n"), "table inet "+notrackTable) {
		return "none", nil
	}
	rules, err := m.run(ctx, "", "nft", "-n", "list", "chain", "inet", notrackTable, "prerouting")
	if err != nil {
		return "", err
	}
	return parseNotrack(rules)
}

var dportRule = regexp.MustCompile(`th dport (\{[^}]*\}|[\d-]+) notrack`)

// parseNotrack reads the ports from nft's listing of the chain.
func parseNotrack(rules string) (string, error) {
	found := dportRule.FindStringSubmatch(rules)
	if found == nil {
		return "", fmt.Errorf("table %s has rules that cnibench did not make", notrackTable)
	}
	ports, err := parsePorts(strings.Trim(found[1], "{ }"))
	return linux.FormatCPUs(ports), err
}

func (m *Machine) setNotrackPorts(ctx context.Context, value string) error {
	// The table is added first, so that deleting it succeeds in any case. nft carries out
	// the whole file or nothing.
	script := "table inet " + notrackTable + "\ndelete table inet " + notrackTable + "\n"
	if value != "none" {
		ports, err := parsePorts(value)
		if err != nil {
			return err
		}
		script += notrackRules(ports)
	}
	_, err := m.run(ctx, script, "nft", "-f", "-")
	return err
}

func notrackRules(ports []int) string {
	set := "{ " + strings.ReplaceAll(linux.FormatCPUs(ports), ",", ", ") + " }"
	var b strings.Builder
	fmt.Fprintf(&b, "table inet %s {\n", notrackTable)
	for _, hook := range []string{"prerouting", "output"} {
		fmt.Fprintf(&b, "\tchain %s {\n\t\ttype filter hook %s priority raw;\n", hook, hook)
		for _, side := range []string{"dport", "sport"} {
			fmt.Fprintf(&b, "\t\tmeta l4proto { tcp, udp } th %s %s notrack\n", side, set)
		}
		b.WriteString("\t}\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// parsePorts parses a list of ports and port ranges.
func parsePorts(text string) ([]int, error) {
	ports, err := linux.ParseCPUs(text, 65535)
	if err != nil {
		return nil, err
	}
	if len(ports) == 0 || ports[0] == 0 {
		return nil, fmt.Errorf("%q: want ports from 1, such as 80,5201-5210", text)
	}
	return ports, nil
}
