package node

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// listLinks lists the interfaces.
func listLinks() ([]netlink.Link, error) {
	links, err := netlink.LinkList()
	if ignoreInterrupted(err) != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	return links, nil
}

func readLinks(s State) error {
	links, err := listLinks()
	if err != nil {
		return err
	}
	for _, l := range links {
		if !slices.Contains(fallback, l.Attrs().Name) {
			s.add("interface", l.Attrs().Name)
		}
	}
	return nil
}

// fallback are devices that the kernel makes when a tunnel's driver is first used and that
// can't be removed (net/ipv4/ip_tunnel.c and others).
var fallback = []string{"tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0"}

// readAddresses lists the addresses of the fallback devices, which only a product gives them.
func readAddresses(s State) error {
	return eachFallbackAddress(func(_ netlink.Link, _ netlink.Addr, text string) error {
		s.add("address", text)
		return nil
	})
}

func eachFallbackAddress(f func(l netlink.Link, a netlink.Addr, text string) error) error {
	links, err := listLinks()
	if err != nil {
		return err
	}
	for _, l := range links {
		name := l.Attrs().Name
		if !slices.Contains(fallback, name) {
			continue
		}
		addrs, err := netlink.AddrList(l, unix.AF_UNSPEC)
		if ignoreInterrupted(err) != nil {
			return fmt.Errorf("list addresses of %s: %w", name, err)
		}
		for _, a := range addrs {
			if !a.IP.IsLinkLocalUnicast() { // the kernel's own
				if err := f(l, a, a.IPNet.String()+" at "+name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func readRoutes(s State) error {
	links, err := linkNames()
	if err != nil {
		return err
	}
	routes, err := allRoutes()
	if err != nil {
		return err
	}
	for _, r := range routes {
		s.add("route", routeText(r, links))
	}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		rules, err := netlink.RuleList(family)
		if ignoreInterrupted(err) != nil && !isMissing(err) {
			return fmt.Errorf("list routing rules: %w", err)
		}
		for _, r := range rules {
			s.add("rule", ruleText(r))
		}
	}
	return nil
}

func ruleText(r netlink.Rule) string {
	return fmt.Sprintf("%s mark %#x", strings.TrimSpace(strings.TrimPrefix(r.String(), "ip rule ")), r.Mark)
}

// allRoutes returns the routes of all tables except the kernel's table of local addresses,
// without multicast and link-local routes, which the kernel adds with an interface.
func allRoutes() ([]netlink.Route, error) {
	var all []netlink.Route
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		routes, err := netlink.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		if ignoreInterrupted(err) != nil && !isMissing(err) {
			return nil, fmt.Errorf("list routes: %w", err)
		}
		for _, r := range routes {
			if r.Table != unix.RT_TABLE_LOCAL && r.Type != unix.RTN_MULTICAST && (r.Dst == nil || !r.Dst.IP.IsLinkLocalUnicast()) {
				all = append(all, r)
			}
		}
	}
	return all, nil
}

func routeText(r netlink.Route, links map[int]string) string {
	text := "default"
	if r.Dst != nil {
		text = r.Dst.String()
	}
	if r.Gw != nil {
		text += " via " + r.Gw.String()
	}
	if name := links[r.LinkIndex]; name != "" {
		text += " dev " + name
	}
	if r.Table != unix.RT_TABLE_MAIN {
		text += fmt.Sprintf(" table %d", r.Table)
	}
	return text
}

func linkNames() (map[int]string, error) {
	links, err := listLinks()
	if err != nil {
		return nil, err
	}
	names := make(map[int]string, len(links))
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	return names, nil
}

// filters returns the eBPF programs at an interface's clsact (tc), in both directions.
func filters(l netlink.Link) []*netlink.BpfFilter {
	var found []*netlink.BpfFilter
	for _, parent := range []uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS} {
		list, err := netlink.FilterList(l, parent)
		if err != nil {
			continue // no clsact
		}
		for _, f := range list {
			if bpf, ok := f.(*netlink.BpfFilter); ok {
				found = append(found, bpf)
			}
		}
	}
	return found
}

func filterText(f *netlink.BpfFilter, l netlink.Link) string { return f.Name + " at " + l.Attrs().Name }

func readFilters(s State) error {
	links, err := listLinks()
	if err != nil {
		return err
	}
	for _, l := range links {
		for _, f := range filters(l) {
			s.add("filter", filterText(f, l))
		}
	}
	return nil
}

func readXFRM(s State) error {
	states, err := netlink.XfrmStateList(unix.AF_UNSPEC)
	if ignoreInterrupted(err) != nil && !isMissing(err) {
		return fmt.Errorf("list IPsec states: %w", err)
	}
	for _, st := range states {
		s.add("ipsec state", fmt.Sprintf("%s to %s spi %#x", st.Src, st.Dst, st.Spi))
	}
	policies, err := netlink.XfrmPolicyList(unix.AF_UNSPEC)
	if ignoreInterrupted(err) != nil && !isMissing(err) {
		return fmt.Errorf("list IPsec policies: %w", err)
	}
	for _, p := range policies {
		s.add("ipsec policy", fmt.Sprintf("%s to %s %s", p.Src, p.Dst, p.Dir))
	}
	return nil
}
