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

// readNft lists tables, chains, and the rules of the other chains.
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
			if known := nftRule(r); !ofKubernetes(known.to) {
				s.add("rule in", known.String())
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

// chainText names a chain, as states do.
func chainText(table, chain string) string { return table + " " + chain }

// cleanNft removes the product's tables, and its chains after its rules in other
// chains, but for those that are to be kept.
func cleanNft(left contender.Leftovers, keep State) ([]string, error) {
	n, err := openNft()
	if n == nil {
		return nil, err
	}
	goes := func(t *nftables.Table) bool {
		return slices.Contains(left.Tables, t.Name) && !slices.Contains(keep["nftables table"], tableName(t))
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
	stays := tally(keep["rule in"])
	for _, c := range n.chains {
		if goes(c.Table) {
			continue
		}
		table := tableName(c.Table)
		if hasPrefix(c.Name, left.Chains) && c.Hooknum == nil && !slices.Contains(keep["chain"], chainText(table, c.Name)) {
			n.conn.FlushChain(c)
			gone = append(gone, c)
			continue
		}
		for _, r := range n.rules(c) {
			known := nftRule(r)
			if !known.of(left) || stays.take(known.String()) {
				continue
			}
			if err := n.conn.DelRule(r); err != nil {
				return nil, fmt.Errorf("rule in %s: %w", known, err)
			}
			removed = append(removed, "rule in "+known.String())
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
