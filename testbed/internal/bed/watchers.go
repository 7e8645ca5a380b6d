//go:build linux

package bed

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// What a test bed takes of the machine's inotify instances, at most: so many a
// node, with a pod network's agent, and so many beside.
const (
	watchersNode         = 9
	watchersControlPlane = 5
)

// checkWatchers says whether the machine has room for that many nodes. Without
// it kubelet and containerd start and then do without this or that.
func checkWatchers(nodes int) error {
	content, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return err
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return fmt.Errorf("fs.inotify.max_user_instances: %w", err)
	}
	used, err := watchers()
	if err != nil {
		return err
	}
	if need := watchersControlPlane + nodes*watchersNode; used+need > limit {
		return fmt.Errorf("%d of this machine's %d inotify instances are used, and %d nodes take up to %d more; end another test bed, or raise the limit: sysctl fs.inotify.max_user_instances=%d", used, limit, nodes, need, used+2*need)
	}
	return nil
}

// watchers counts the inotify instances in use. Those of other users have
// limits of their own, but this program is root, and so are nearly all that
// watch.
func watchers() (int, error) {
	descriptors, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return 0, err
	}
	count := 0
	for _, path := range descriptors {
		if target, err := os.Readlink(path); err == nil && target == "anon_inode:inotify" {
			count++
		}
	}
	return count, nil
}
