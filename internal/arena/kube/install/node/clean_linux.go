package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/contender"
)

// clean removes the leftovers that are not in the state to keep. The CNI's configuration
// comes first, so that no new pod is attached, and rules come before the chains and sets
// that they name.
func clean(ctx context.Context, req Request) ([]string, error) {
	var removed []string
	var failed []error
	l, keep := req.Leftovers, req.Keep
	for _, part := range []func() ([]string, error){
		func() ([]string, error) { return cleanCNI(keep) },
		func() ([]string, error) { return cleanNft(l, keep) },
		func() ([]string, error) { return cleanEmpty(keep) },
		func() ([]string, error) { return cleanLegacy(ctx, l, keep) },
		func() ([]string, error) { return cleanSets(l.Sets, keep["ipset"]) },
		func() ([]string, error) { return cleanIPVS(l.IPVS, keep) },
		func() ([]string, error) { return cleanFilters(l.Filters, keep["filter"]) },
		func() ([]string, error) { return cleanPrograms(cgroupRoots(), l.Filters, keep["program"]) },
		func() ([]string, error) { return cleanXFRM(l.XFRM, keep) },
		func() ([]string, error) { return cleanRoutes(l, req.PodCIDR, keep) },
		func() ([]string, error) { return cleanLinks(l.Interfaces, keep["interface"]) },
		func() ([]string, error) { return cleanAddresses(l.Interfaces, keep["address"]) },
		func() ([]string, error) { return cleanMounts(l.Mounts, keep["mount"]) },
		func() ([]string, error) { return cleanFiles(l.Files, keep["file"]) },
		func() ([]string, error) { return cleanSettings(keep) },
	} {
		names, err := part()
		removed = append(removed, names...)
		failed = append(failed, err)
	}
	return removed, errors.Join(failed...)
}

// cleanCNI removes the files in the CNI's folders that are not in the state to keep, and
// gives files that Cilium has renamed their names back (cilium/cilium plugins/cilium-cni:
// ".cilium_bak"). Without a state to keep it does nothing.
func cleanCNI(keep State) ([]string, error) {
	if keep == nil {
		return nil, nil
	}
	var removed []string
	for _, dir := range []string{confDir, pluginDir} {
		for _, name := range names(dir) {
			file := filepath.Join(dir, name)
			if slices.Contains(keep["file"], file) {
				continue
			}
			original, renamed := strings.CutSuffix(file, ".cilium_bak")
			if renamed && slices.Contains(keep["file"], original) {
				if err := os.Rename(file, original); err != nil {
					return removed, fmt.Errorf("give %s its name back: %w", original, err)
				}
				continue
			}
			if err := removeTree(file); err != nil {
				return removed, err
			}
			removed = append(removed, "file "+file)
		}
	}
	return removed, nil
}

// cleanFiles removes the recipe's files.
func cleanFiles(patterns, keep []string) ([]string, error) {
	var removed []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return removed, fmt.Errorf("%s: %w", pattern, err)
		}
		for _, file := range found {
			if slices.Contains(keep, file) {
				continue
			}
			if err := removeTree(file); err != nil {
				return removed, err
			}
			removed = append(removed, "file "+file)
		}
	}
	return removed, nil
}

// removeTree removes a file or folder. It returns an error at another file system that is
// mounted inside, which would be somebody else's.
func removeTree(file string) error {
	var top unix.Stat_t
	if err := unix.Lstat(file, &top); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		return fmt.Errorf("remove %s: %w", file, err)
	}
	return removeBelow(file, top.Dev)
}

func removeBelow(file string, dev uint64) error {
	var st unix.Stat_t
	err := unix.Lstat(file, &st)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return fmt.Errorf("remove %s: %w", file, err)
	}
	// On an overlay files have other devices than folders; the kernel removes none that something
	// is mounted on.
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		if st.Dev != dev {
			return fmt.Errorf("remove %s: another file system is mounted there", file)
		}
		for _, name := range names(file) {
			if err := removeBelow(filepath.Join(file, name), dev); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove: %w", err)
	}
	return nil
}

func cleanFilters(prefixes, keep []string) ([]string, error) {
	if len(prefixes) == 0 {
		return nil, nil
	}
	links, err := listLinks()
	if err != nil {
		return nil, err
	}
	var removed []string
	for _, l := range links {
		for _, f := range filters(l) {
			text := filterText(f, l)
			if !hasPrefix(f.Name, prefixes) || slices.Contains(keep, text) {
				continue
			}
			if err := netlink.FilterDel(f); err != nil {
				return removed, fmt.Errorf("filter %s: %w", text, err)
			}
			removed = append(removed, "filter "+text)
		}
	}
	return removed, nil
}

// cleanXFRM removes all IPsec states and policies, as they do not say whose they are. It
// removes none if the state to keep is unknown or has some.
func cleanXFRM(wanted bool, keep State) ([]string, error) {
	if !wanted || keep == nil || keep.HasIPsec() {
		return nil, nil
	}
	if err := netlink.XfrmPolicyFlush(); err != nil && !isMissing(err) {
		return nil, fmt.Errorf("IPsec policies: %w", err)
	}
	if err := netlink.XfrmStateFlush(0); err != nil && !isMissing(err) {
		return nil, fmt.Errorf("IPsec states: %w", err)
	}
	return []string{"all IPsec states and policies"}, nil
}

// cleanRoutes removes the product's routing tables with the rules that lead there, and
// from the main table the routes to the pods' network. The rule of the local table gets its
// place back.
func cleanRoutes(l contender.Leftovers, podCIDR string, keep State) ([]string, error) {
	var removed []string
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		rules, err := netlink.RuleList(family)
		if ignoreInterrupted(err) != nil && !isMissing(err) {
			return nil, fmt.Errorf("list routing rules: %w", err)
		}
		moved, err := moveBack(rules, family, keep["rule"])
		removed = append(removed, moved...)
		if err != nil {
			return removed, err
		}
		for _, r := range rules {
			if !slices.Contains(l.RouteTables, r.Table) || slices.Contains(keep["rule"], ruleText(r)) {
				continue
			}
			r.Family = family
			if err := netlink.RuleDel(&r); err != nil {
				return removed, fmt.Errorf("routing rule %d: %w", r.Priority, err)
			}
			removed = append(removed, fmt.Sprintf("rule %d: lookup %d", r.Priority, r.Table))
		}
	}
	links, err := linkNames()
	if err != nil {
		return removed, err
	}
	routes, err := allRoutes()
	if err != nil {
		return removed, err
	}
	_, pods, err := net.ParseCIDR(podCIDR)
	if l.PodRoutes && err != nil {
		return removed, fmt.Errorf("pods' network %q: %w", podCIDR, err)
	}
	for _, r := range routes {
		toPods := l.PodRoutes && r.Table == unix.RT_TABLE_MAIN && r.Dst != nil && pods.Contains(r.Dst.IP)
		text := routeText(r, links)
		if !toPods && !slices.Contains(l.RouteTables, r.Table) || slices.Contains(keep["route"], text) {
			continue
		}
		if err := netlink.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
			return removed, fmt.Errorf("route %s: %w", text, err)
		}
		removed = append(removed, "route "+text)
	}
	return removed, nil
}

// moveBack gives a rule of the local table the priority that it has in the list to keep:
// cilium/cilium daemon/cmd/daemon.go, NodeEnsureLocalRoutingRule, moves it from 0 to 100. The
// old rule comes first, so that the node keeps its own addresses.
func moveBack(rules []netlink.Rule, family int, keep []string) ([]string, error) {
	var removed []string
	there := func(text string) bool {
		return slices.ContainsFunc(rules, func(r netlink.Rule) bool { return ruleText(r) == text })
	}
	for _, r := range rules {
		_, what, _ := strings.Cut(ruleText(r), ":")
		if r.Table != unix.RT_TABLE_LOCAL || slices.Contains(keep, ruleText(r)) {
			continue
		}
		for _, text := range keep {
			priority, known, _ := strings.Cut(text, ":")
			at, err := strconv.Atoi(priority)
			if known != what || there(text) || err != nil {
				continue
			}
			old := r
			old.Family, old.Priority = family, at
			if err := netlink.RuleAdd(&old); err != nil {
				return removed, fmt.Errorf("routing rule %s: %w", text, err)
			}
			r.Family = family
			if err := netlink.RuleDel(&r); err != nil {
				return removed, fmt.Errorf("routing rule %d: %w", r.Priority, err)
			}
			removed = append(removed, fmt.Sprintf("rule %d: lookup %d", r.Priority, r.Table))
			break
		}
	}
	return removed, nil
}

// cleanLinks removes the interfaces whose names match.
func cleanLinks(patterns, keep []string) ([]string, error) {
	links, err := listLinks()
	if err != nil {
		return nil, err
	}
	var removed []string
	var failed []error
	for _, l := range links {
		name := l.Attrs().Name
		if slices.Contains(keep, name) || !matches(name, patterns) || slices.Contains(fallback, name) {
			continue
		}
		err := netlink.LinkDel(l)
		if errors.Is(err, unix.ENODEV) {
			continue // removed with the other end of its veth pair
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("interface %s: %w", name, err))
			continue
		}
		removed = append(removed, "interface "+name)
	}
	return removed, errors.Join(failed...)
}

// cleanAddresses takes the addresses from the fallback devices whose names match, for these
// can't be removed, and sets them down.
func cleanAddresses(patterns, keep []string) ([]string, error) {
	var removed []string
	err := eachFallbackAddress(func(l netlink.Link, a netlink.Addr, text string) error {
		if !matches(l.Attrs().Name, patterns) || slices.Contains(keep, text) {
			return nil
		}
		err := netlink.AddrDel(l, &a)
		if err == nil && len(keep) == 0 {
			err = netlink.LinkSetDown(l)
		}
		if err != nil {
			return fmt.Errorf("address %s: %w", text, err)
		}
		removed = append(removed, "address "+text)
		return nil
	})
	return removed, err
}

// cleanMounts unmounts all that is mounted at the recipe's mount points.
func cleanMounts(points, keep []string) ([]string, error) {
	var removed []string
	for _, point := range points {
		for !slices.Contains(keep, point) {
			err := unix.Unmount(point, unix.MNT_DETACH)
			if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
				break // nothing is mounted there
			}
			if err != nil {
				return removed, fmt.Errorf("unmount %s: %w", point, err)
			}
			removed = append(removed, "mount "+point)
		}
	}
	return removed, nil
}
