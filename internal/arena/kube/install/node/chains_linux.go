package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/contender"
)

// ofKubernetes reports whether the chain is kube-proxy's or kubelet's, by the names in
// kubernetes pkg/proxy and pkg/kubelet. Such chains stay, and change with the Services.
func ofKubernetes(chain string) bool {
	return strings.HasPrefix(chain, "KUBE-") && !hasPrefix(chain, ofKubeRouter)
}

// ofKubeRouter are the prefixes of Kube-router's chains, some of which begin with KUBE-,
// too.
var ofKubeRouter = []string{"KUBE-ROUTER-", "KUBE-POD-FW-", "KUBE-NWPLCY-"}

var families = map[nftables.TableFamily]string{
	nftables.TableFamilyIPv4: "ip", nftables.TableFamilyIPv6: "ip6", nftables.TableFamilyINet: "inet",
	nftables.TableFamilyARP: "arp", nftables.TableFamilyBridge: "bridge", nftables.TableFamilyNetdev: "netdev",
}

// nft is the kernel's nftables. The iptables of today writes into it, too.
type nft struct {
	conn   *nftables.Conn
	chains []*nftables.Chain
}

// openNft returns nil on a kernel without nftables.
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

// readNft lists tables, chains and rules, without those of Kubernetes.
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
		if c.Hooknum == nil { // no base chain: iptables makes those with the first rule
			s.add("chain", chainText(tableName(c.Table), c.Name))
		} else if c.Policy != nil {
			s.add(setting, settingText(policyKey(tableName(c.Table), c.Name), policies[*c.Policy]))
		}
		for _, r := range n.rules(c) {
			if known := nftRule(r); !known.ofKubernetes() {
				s.add("rule in", known.String())
			}
		}
	}
	return nil
}

// rules returns the chain's rules; none if the chain was removed meanwhile.
func (n *nft) rules(c *nftables.Chain) []*nftables.Rule {
	rules, err := n.conn.GetRules(c.Table, c)
	if err != nil {
		return nil
	}
	return rules
}

// chainText names a chain, as states do.
func chainText(table, chain string) string { return table + " " + chain }

// policyKey names what a base chain does with packets that no rule decides about. It is a
// setting: a product may change it (Kube-OVN: iptables -P FORWARD ACCEPT).
func policyKey(table, chain string) string { return "policy of " + chainText(table, chain) }

var policies = map[nftables.ChainPolicy]string{nftables.ChainPolicyDrop: "DROP", nftables.ChainPolicyAccept: "ACCEPT"}

// cleanPolicies gives base chains their policies in the state to keep.
func (n *nft) cleanPolicies(keep State) []string {
	var removed []string
	for _, c := range n.chains {
		if c.Hooknum == nil || c.Policy == nil || c.Table.Name == "kube-proxy" {
			continue
		}
		key, now := policyKey(tableName(c.Table), c.Name), policies[*c.Policy]
		for policy, name := range policies {
			if name == keep.setTo(key) && name != now {
				c.Policy = &policy
				n.conn.AddChain(c)
				removed = append(removed, fmt.Sprintf("value %s of %s", now, key))
			}
		}
	}
	return removed
}

// cleanNft removes the product's tables, its rules in other chains, and then its chains,
// except those to keep.
func cleanNft(left contender.Leftovers, keep State) ([]string, error) {
	n, err := openNft()
	if n == nil {
		return nil, err
	}
	remove := func(t *nftables.Table) bool {
		return slices.Contains(left.Tables, t.Name) && !slices.Contains(keep["nftables table"], tableName(t))
	}
	var removed []string
	all, err := n.conn.ListTables()
	if err != nil {
		return nil, fmt.Errorf("list nftables tables: %w", err)
	}
	for _, t := range all {
		if remove(t) {
			n.conn.DelTable(t)
			removed = append(removed, "nftables table "+tableName(t))
		}
	}
	removed = append(removed, n.cleanPolicies(keep)...)
	var flushed []*nftables.Chain
	toKeep := tally(keep["rule in"])
	for _, c := range n.chains {
		if remove(c.Table) {
			continue
		}
		table := tableName(c.Table)
		if hasPrefix(c.Name, left.Chains) && c.Hooknum == nil && !slices.Contains(keep["chain"], chainText(table, c.Name)) {
			n.conn.FlushChain(c)
			flushed = append(flushed, c)
			continue
		}
		for _, r := range n.rules(c) {
			known := nftRule(r)
			if !known.belongsTo(left, keep != nil) || toKeep.take(known.String()) {
				continue
			}
			if err := n.conn.DelRule(r); err != nil {
				return nil, fmt.Errorf("rule in %s: %w", known, err)
			}
			removed = append(removed, "rule in "+known.String())
		}
	}
	for _, c := range flushed {
		n.conn.DelChain(c)
		removed = append(removed, "chain "+chainText(tableName(c.Table), c.Name))
	}
	if err := n.conn.Flush(); err != nil {
		return nil, fmt.Errorf("remove nftables chains: %w", err)
	}
	return removed, nil
}

// iptablesTables are the tables that iptables makes in nftables when it first reads them.
// Their base chains cost every packet a call, even when empty.
var iptablesTables = []string{"filter", "nat", "mangle", "raw", "security"}

// cleanEmpty removes iptables' tables that are not in the state to keep and have no rule.
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
