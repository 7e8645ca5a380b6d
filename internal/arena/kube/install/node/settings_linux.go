package node

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sysctls is where the kernel has its settings.
const sysctls = "/proc/sys"

// settings are the kernel's settings that pod networks change, as patterns of files
// below sysctls. Those of interfaces count where an interface was there before.
var settings = []string{
	"net/ipv4/ip_forward",
	"net/ipv4/conf/*/forwarding", "net/ipv4/conf/*/rp_filter", "net/ipv4/conf/*/arp_ignore", "net/ipv4/conf/*/arp_announce",
	"net/ipv4/conf/*/proxy_arp", "net/ipv4/conf/*/accept_local", "net/ipv4/conf/*/route_localnet", "net/ipv4/conf/*/src_valid_mark",
	"net/ipv4/conf/*/send_redirects", "net/ipv4/conf/*/accept_redirects",
	"net/ipv6/conf/*/forwarding", "net/ipv6/conf/*/accept_ra", "net/ipv6/conf/*/disable_ipv6", "net/ipv6/conf/*/proxy_ndp",
	"net/bridge/bridge-nf-call-*", "net/ipv4/vs/*",
}

func readSettings(s State) error {
	for _, pattern := range settings {
		files, err := filepath.Glob(filepath.Join(sysctls, pattern))
		if err != nil {
			return fmt.Errorf("%s: %w", pattern, err)
		}
		for _, file := range files {
			value, err := os.ReadFile(file)
			if err != nil {
				continue // only writable, or its interface has gone
			}
			s.add(setting, settingText(strings.TrimPrefix(file, sysctls+"/"), strings.TrimSpace(string(value))))
		}
	}
	return nil
}

// cleanSettings gives the kernel's settings the values back that they had.
func cleanSettings(keep State) ([]string, error) {
	were := slices.Clone(keep[setting])
	slices.SortStableFunc(were, func(a, b string) int { return cmp.Compare(settingOrder(a), settingOrder(b)) })
	var removed []string
	for _, text := range were {
		key, value := cutSetting(text)
		if !known(key) { // whoever can write the journal may write no other file
			continue
		}
		file := filepath.Join(sysctls, key)
		now, err := os.ReadFile(file)
		if err != nil || strings.TrimSpace(string(now)) == value {
			continue // has gone, or is as it was
		}
		if err := os.WriteFile(file, []byte(value), 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, fmt.Errorf("give %s its value %s back: %w", key, value, err)
		}
		removed = append(removed, fmt.Sprintf("value %s of %s", strings.TrimSpace(string(now)), key))
	}
	return removed, nil
}

// settingOrder puts the settings first that set others when they are written.
func settingOrder(text string) int {
	switch {
	case strings.HasPrefix(text, "net/ipv4/ip_forward"):
		return 0
	case strings.Contains(text, "/conf/all/"):
		return 1
	}
	return 2
}

func known(key string) bool { return matches(key, settings) }
