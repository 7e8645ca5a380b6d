package node

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/contender"
)

// legacy is one address family of the older iptables, whose tables nftables does not list.
type legacy struct {
	names   string   // file in which the kernel lists the family's tables
	save    []string // program with its arguments
	restore []string // the same
	label   string   // begins the names of its tables in a State
}

var legacies = []legacy{
	{"/proc/net/ip_tables_names", []string{"iptables-legacy-save"}, []string{"iptables-legacy-restore", "--noflush"}, "legacy ip"},
	{"/proc/net/ip6_tables_names", []string{"ip6tables-legacy-save"}, []string{"ip6tables-legacy-restore", "--noflush"}, "legacy ip6"},
}

// dump returns the output of the family's save program; nil if the kernel has no tables of
// the family, errNoProgram if it has some and the program is missing.
func (l legacy) dump(ctx context.Context) ([]byte, error) {
	tables, err := os.ReadFile(l.names)
	if err != nil || len(bytes.TrimSpace(tables)) == 0 {
		return nil, nil // the kernel lacks it, or nobody uses it
	}
	out, err := exec.CommandContext(ctx, l.save[0], l.save[1:]...).Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, errNoProgram
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.save[0], err)
	}
	return out, nil
}

var errNoProgram = errors.New("no program can list the legacy tables")

// readLegacy adds to s the base chains' policies, the chains and the rules, without those of
// kube-proxy and kubelet. blind says what could not be read.
func readLegacy(ctx context.Context, s State) (blind []string, err error) {
	for _, l := range legacies {
		out, err := l.dump(ctx)
		switch {
		case errors.Is(err, errNoProgram):
			blind = append(blind, fmt.Sprintf("%s tables are in use and can't be listed: neither the node nor the image has %s", l.label, l.save[0]))
			continue
		case err != nil:
			return nil, err
		}
		eachPolicy(out, func(table, chain, policy string) {
			s.add(setting, settingText(policyKey(l.label+" "+table, chain), policy))
		})
		eachLegacy(out, func(table, chain, rule string) {
			switch r := parseSavedRule(l.label+" "+table, chain, rule); {
			case r.ofKubernetes():
			case rule == "":
				s.add("chain", chainText(l.label+" "+table, chain))
			default:
				s.add("rule in", r.String())
			}
		})
	}
	return blind, nil
}

// eachLegacy calls each for every rule in the output of iptables-save, and with rule ""
// for every chain that is no base chain: in its line, ":NAME - [0:0]", "-" stands for a policy.
func eachLegacy(out []byte, each func(table, chain, rule string)) {
	table := ""
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		line := lines.Text()
		switch fields := strings.Fields(line); {
		case strings.HasPrefix(line, "*"):
			table = line[1:]
		case strings.HasPrefix(line, ":") && len(fields) > 1 && fields[1] == "-":
			each(table, fields[0][1:], "")
		case strings.HasPrefix(line, "-A ") && len(fields) > 1:
			each(table, fields[1], line)
		}
	}
}

// eachPolicy calls each for every base chain in the output of iptables-save: ":INPUT ACCEPT [0:0]".
func eachPolicy(out []byte, each func(table, chain, policy string)) {
	table := ""
	for line := range strings.Lines(string(out)) {
		switch fields := strings.Fields(line); {
		case strings.HasPrefix(line, "*"):
			table = fields[0][1:]
		case strings.HasPrefix(line, ":") && len(fields) > 1 && fields[1] != "-":
			each(table, fields[0][1:], fields[1])
		}
	}
}

// cleanLegacy takes away what legacyScript names in every family, and returns its names.
func cleanLegacy(ctx context.Context, left contender.Leftovers, keep State) ([]string, error) {
	var removed []string
	for _, l := range legacies {
		out, err := l.dump(ctx)
		if errors.Is(err, errNoProgram) {
			continue // readLegacy reports that
		}
		if err != nil {
			return nil, err
		}
		script, names := legacyScript(out, left, l.label, keep)
		if len(names) == 0 {
			continue
		}
		cmd := exec.CommandContext(ctx, l.restore[0], l.restore[1:]...)
		cmd.Stdin = strings.NewReader(script)
		if msg, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", l.restore[0], err, bytes.TrimSpace(msg))
		}
		removed = append(removed, names...)
	}
	return removed, nil
}

// legacyScript returns the input of iptables-restore --noflush that gives base chains their
// old policies and removes the product's rules and chains, except those to keep: first the
// rules in other chains, which lead to the product's, then the rules of the product's chains,
// then these chains. keep is nil if nobody looked at the node before the installation.
func legacyScript(out []byte, left contender.Leftovers, label string, keep State) (script string, removed []string) {
	type part struct{ policies, rules, flush, del []string } // lines of the script for a table
	parts := map[string]*part{}
	toKeep := tally(keep["rule in"])
	var order []string
	remove := func(table, chain string) bool {
		return hasPrefix(chain, left.Chains) && !slices.Contains(keep["chain"], chainText(label+" "+table, chain))
	}
	partOf := func(table string) *part {
		if parts[table] == nil {
			parts[table], order = &part{}, append(order, table)
		}
		return parts[table]
	}
	eachPolicy(out, func(table, chain, policy string) {
		key := policyKey(label+" "+table, chain)
		// keep comes from the journal, which others can write: of it only these words get into the script
		if old := keep.setTo(key); old != policy && (old == "ACCEPT" || old == "DROP") {
			p := partOf(table)
			p.policies = append(p.policies, fmt.Sprintf(":%s %s [0:0]", chain, old))
			removed = append(removed, fmt.Sprintf("value %s of %s", policy, key))
		}
	})
	eachLegacy(out, func(table, chain, rule string) {
		p := partOf(table)
		switch {
		case rule == "" && remove(table, chain):
			p.flush = append(p.flush, "-F "+chain)
			p.del = append(p.del, "-X "+chain)
			removed = append(removed, "chain "+chainText(label+" "+table, chain))
		case rule != "" && !remove(table, chain):
			r := parseSavedRule(label+" "+table, chain, rule)
			if !r.belongsTo(left, keep != nil) || toKeep.take(r.String()) {
				return // it is another's, or was there before
			}
			p.rules = append(p.rules, "-D "+strings.TrimPrefix(rule, "-A "))
			removed = append(removed, "rule in "+r.String())
		}
	})
	var b strings.Builder
	for _, table := range order {
		p := parts[table]
		if len(p.policies)+len(p.rules)+len(p.del) == 0 {
			continue
		}
		fmt.Fprintf(&b, "*%s\n", table)
		for _, line := range slices.Concat(p.policies, p.rules, p.flush, p.del) {
			fmt.Fprintln(&b, line)
		}
		fmt.Fprintln(&b, "COMMIT")
	}
	return b.String(), removed
}
