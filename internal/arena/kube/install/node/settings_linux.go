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

// sysctls is the folder of the kernel's settings.
const sysctls = "/proc/sys"

// settings are the kernel's settings that pod networks change, as patterns of files below
// sysctls. Settings of new interfaces are not compared.
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
				continue // only writable, or its interface was removed
			}
			s.add(setting, settingText(strings.TrimPrefix(file, sysctls+"/"), strings.TrimSpace(string(value))))
		}
	}
	return nil
}

// cleanSettings sets the kernel's settings to their values in the state to keep.
func cleanSettings(keep State) ([]string, error) {
	old := slices.Clone(keep[setting])
	slices.SortStableFunc(old, func(a, b string) int { return cmp.Compare(settingOrder(a), settingOrder(b)) })
	var removed []string
	for _, text := range old {
		key, value := cutSetting(text)
		if !matches(key, settings) { // others can write the journal: write no other files
			continue
		}
		file := filepath.Join(sysctls, key)
		current, err := os.ReadFile(file)
		if err != nil || strings.TrimSpace(string(current)) == value {
			continue // removed or unchanged
		}
		if err := os.WriteFile(file, []byte(value), 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, fmt.Errorf("set %s to its old value %s: %w", key, value, err)
		}
		removed = append(removed, fmt.Sprintf("value %s of %s", strings.TrimSpace(string(current)), key))
	}
	return removed, nil
}

// settingOrder sorts settings first whose change also changes other settings.
func settingOrder(text string) int {
	switch {
	case strings.HasPrefix(text, "net/ipv4/ip_forward"):
		return 0
	case strings.Contains(text, "/conf/all/"):
		return 1
	}
	return 2
}
