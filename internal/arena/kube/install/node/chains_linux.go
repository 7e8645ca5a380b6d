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

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// ofKubernetes is whether kube-proxy or kubelet writes the chain, by the
// names in kubernetes pkg/proxy and pkg/kubelet: these stay and change with
// the Services, whatever pod network there is.
func ofKubernetes(chain string) bool {
	return strings.HasPrefix(chain, "KUBE-") && !hasPrefix(chain, ofKubeRouter)
}

// ofKubeRouter are the chains of Kube-router, whose names begin alike.
var ofKubeRouter = []string{"KUBE-ROUTER-", "KUBE-POD-FW-", "KUBE-NWPLCY-"}

var families = map[nftables.TableFamily]string{
	nftables.TableFamilyIPv4: "ip", nftables.TableFamilyIPv6: "ip6", nftables.TableFamilyINet: "inet",
	nftables.TableFamilyARP: "arp", nftables.TableFamilyBridge: "bridge", nftables.TableFamilyNetdev: "netdev",
}

// nft is the kernel's nftables, where iptables of today writes too.
type nft struct {
	conn   *nftables.Conn
	chains []*nftables.Chain
}

// openNft is nil on a kernel without nftables.
func openNft() (*nft, error) {
	conn, err := nftables.New()
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	chains, err := conn.ListChains()
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list nftables chains: %w", err)
	}
	return &nft{conn, chains}, nil
}

func tableName(t *nftables.Table) string { return families[t.Family] + " " + t.Name }

// readNft lists tables, chains, and where the rules of the other chains lead.
func readNft(s State) error {
	n, err := openNft()
	if n == nil {
		return err
	}
	tables, err := n.conn.ListTables()
	if err != nil {
		return fmt.Errorf("list nftables tables: %w", err)
	}
	for _, t := range tables {
		if t.Name != "kube-proxy" {
			s.add("nftables table", tableName(t))
		}
	}
	for _, c := range n.chains {
		if ofKubernetes(c.Name) || c.Table.Name == "kube-proxy" {
			continue
		}
		if c.Hooknum == nil { // base chains come and go with the first rule
			s.add("chain", chainText(tableName(c.Table), c.Name))
		}
		for _, r := range n.rules(c) {
			to := leadsTo(r)
			if to != "" && !ofKubernetes(to) {
				s.add("rule in", ruleInText(tableName(c.Table), c.Name, to))
			}
		}
	}
	return nil
}

// rules are the chain's; a chain that has gone by now has none.
func (n *nft) rules(c *nftables.Chain) []*nftables.Rule {
	rules, err := n.conn.GetRules(c.Table, c)
	if err != nil {
		return nil
	}
	return rules
}

// leadsTo is the chain or target of a rule; "" for one that only counts.
func leadsTo(r *nftables.Rule) string {
	to := ""
	for _, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Verdict:
			switch {
			case e.Chain != "":
				to = e.Chain
			case e.Kind == expr.VerdictAccept:
				to = "accept"
			case e.Kind == expr.VerdictDrop:
				to = "drop"
			case e.Kind == expr.VerdictReturn:
				to = "return"
			}
		case *expr.Target:
			to = e.Name
		case *expr.Masq:
			to = "masquerade"
		case *expr.NAT:
			to = "nat"
		}
	}
	return to
}

// chainText and ruleInText name a chain, and a rule by where it leads, as states do.
func chainText(table, chain string) string { return table + " " + chain }

func ruleInText(table, chain, to string) string { return table + " " + chain + ": " + to }

// cleanNft removes the tables by name, and the chains with the prefixes after
// the rules that lead to them, but for those that are to be kept.
func cleanNft(tables, prefixes []string, keep State) ([]string, error) {
	n, err := openNft()
	if n == nil || len(tables)+len(prefixes) == 0 {
		return nil, err
	}
	goes := func(t *nftables.Table) bool {
		return slices.Contains(tables, t.Name) && !slices.Contains(keep["nftables table"], tableName(t))
	}
	var removed []string
	all, err := n.conn.ListTables()
	if err != nil {
		return nil, fmt.Errorf("list nftables tables: %w", err)
	}
	for _, t := range all {
		if goes(t) {
			n.conn.DelTable(t)
			removed = append(removed, "nftables table "+tableName(t))
		}
	}
	var gone []*nftables.Chain
	for _, c := range n.chains {
		if goes(c.Table) {
			continue
		}
		table := tableName(c.Table)
		if hasPrefix(c.Name, prefixes) && c.Hooknum == nil && !slices.Contains(keep["chain"], chainText(table, c.Name)) {
			n.conn.FlushChain(c)
			gone = append(gone, c)
			continue
		}
		for _, r := range n.rules(c) {
			to := leadsTo(r)
			text := ruleInText(table, c.Name, to)
			if !hasPrefix(to, prefixes) || slices.Contains(keep["rule in"], text) {
				continue
			}
			if err := n.conn.DelRule(r); err != nil {
				return nil, fmt.Errorf("rule in %s: %w", text, err)
			}
			removed = append(removed, "rule in "+text)
		}
	}
	for _, c := range gone {
		n.conn.DelChain(c)
		removed = append(removed, "chain "+chainText(tableName(c.Table), c.Name))
	}
	if err := n.conn.Flush(); err != nil {
		return nil, fmt.Errorf("remove nftables chains: %w", err)
	}
	return removed, nil
}

// iptablesTables are those that iptables makes in nftables when it first looks
// at them. Their base chains cost every packet a call, even when empty.
var iptablesTables = []string{"filter", "nat", "mangle", "raw", "security"}

// cleanEmpty removes iptables' tables that have come since the state to keep
// and hold no rule.
func cleanEmpty(keep State) ([]string, error) {
	n, err := openNft()
	if n == nil || keep == nil {
		return nil, err
	}
	tables, err := n.conn.ListTables()
	if err != nil {
		return nil, fmt.Errorf("list nftables tables: %w", err)
	}
	var removed []string
	for _, t := range tables {
		ofIptables := t.Family == nftables.TableFamilyIPv4 || t.Family == nftables.TableFamilyIPv6
		if !ofIptables || !slices.Contains(iptablesTables, t.Name) || slices.Contains(keep["nftables table"], tableName(t)) {
			continue
		}
		inUse := slices.ContainsFunc(n.chains, func(c *nftables.Chain) bool {
			return tableName(c.Table) == tableName(t) && (c.Hooknum == nil || len(n.rules(c)) > 0)
		})
		if !inUse {
			n.conn.DelTable(t)
			removed = append(removed, "nftables table "+tableName(t))
		}
	}
	if err := n.conn.Flush(); err != nil {
		return nil, fmt.Errorf("remove nftables tables: %w", err)
	}
	return removed, nil
}

func hasPrefix(name string, prefixes []string) bool {
	return name != "" && slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// legacy is one family of the older iptables, which nftables does not show.
type legacy struct {
	names   string // the kernel's list of its tables
	save    []string
	restore []string
	label   string
}

var legacies = []legacy{
	{"/proc/net/ip_tables_names", []string{"iptables-legacy-save"}, []string{"iptables-legacy-restore", "--noflush"}, "legacy ip"},
	{"/proc/net/ip6_tables_names", []string{"ip6tables-legacy-save"}, []string{"ip6tables-legacy-restore", "--noflush"}, "legacy ip6"},
}

// dump is what the family's program prints; "" where the kernel has none of
// its tables, errNoProgram where it has but nothing here can list them.
func (l legacy) dump(ctx context.Context) ([]byte, error) {
	tables, err := os.ReadFile(l.names)
	if err != nil || len(bytes.TrimSpace(tables)) == 0 {
		return nil, nil // not in the kernel, or never used
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

var errNoProgram = errors.New("no program for it")

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
		eachLegacy(out, func(table, chain, rule string) {
			switch to := target(rule); {
			case ofKubernetes(chain) || ofKubernetes(to):
			case rule == "":
				s.add("chain", chainText(l.label+" "+table, chain))
			case to != "":
				s.add("rule in", ruleInText(l.label+" "+table, chain, to))
			}
		})
	}
	return blind, nil
}

// eachLegacy goes through the output of iptables-save: a chain of a user (its
// policy is "-") is given with no rule.
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

// target is what a rule jumps or goes to.
func target(rule string) string {
	fields := strings.Fields(rule)
	for i, f := range fields[:max(0, len(fields)-1)] {
		if f == "-j" || f == "-g" {
			return fields[i+1]
		}
	}
	return ""
}

func cleanLegacy(ctx context.Context, prefixes []string, keep State) ([]string, error) {
	var removed []string
	for _, l := range legacies {
		out, err := l.dump(ctx)
		if errors.Is(err, errNoProgram) {
			continue // state says so
		}
		if err != nil {
			return nil, err
		}
		script, gone := legacyScript(out, prefixes, l.label, keep)
		if len(gone) == 0 {
			continue
		}
		cmd := exec.CommandContext(ctx, l.restore[0], l.restore[1:]...)
		cmd.Stdin = strings.NewReader(script)
		if msg, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", l.restore[0], err, bytes.TrimSpace(msg))
		}
		removed = append(removed, gone...)
	}
	return removed, nil
}

// legacyScript is what iptables-restore --noflush needs to remove the chains
// with the prefixes, but for those to keep: first the rules that lead there,
// then their own, then them.
func legacyScript(out []byte, prefixes []string, label string, keep State) (script string, removed []string) {
	type part struct{ rules, flush, del []string }
	parts := map[string]*part{}
	var order []string
	goes := func(table, chain string) bool {
		return hasPrefix(chain, prefixes) && !slices.Contains(keep["chain"], chainText(label+" "+table, chain))
	}
	eachLegacy(out, func(table, chain, rule string) {
		p := parts[table]
		if p == nil {
			p = &part{}
			parts[table], order = p, append(order, table)
		}
		switch {
		case rule == "" && goes(table, chain):
			p.flush = append(p.flush, "-F "+chain)
			p.del = append(p.del, "-X "+chain)
			removed = append(removed, "chain "+chainText(label+" "+table, chain))
		case rule != "" && !goes(table, chain) && hasPrefix(target(rule), prefixes):
			text := ruleInText(label+" "+table, chain, target(rule))
			if slices.Contains(keep["rule in"], text) {
				return
			}
			p.rules = append(p.rules, "-D "+strings.TrimPrefix(rule, "-A "))
			removed = append(removed, "rule in "+text)
		}
	})
	var b strings.Builder
	for _, table := range order {
		p := parts[table]
		if len(p.rules)+len(p.del) == 0 {
			continue
		}
		fmt.Fprintf(&b, "*%s\n", table)
		for _, line := range slices.Concat(p.rules, p.flush, p.del) {
			fmt.Fprintln(&b, line)
		}
		fmt.Fprintln(&b, "COMMIT")
	}
	return b.String(), removed
}
