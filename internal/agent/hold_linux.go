package agent

import (
	"os"
	"strings"
)

// leaveControlGroups moves this process to the root of every hierarchy that it sees
// (cgroups(7)). Where it may not, it stays in the group of its pod, and only a pod that is
// removed in the middle of a trial can end it.
func leaveControlGroups() {
	text, _ := os.ReadFile("/proc/self/cgroup") // none: nothing to leave
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(line, ":")
		controllers, _, _ := strings.Cut(rest, ":")
		names := []string{strings.TrimPrefix(controllers, "name=")}
		if controllers == "" { // version 2, alone or beside version 1
			names = []string{"", "unified"}
		}
		for _, name := range names {
			f, err := os.OpenFile("/sys/fs/cgroup/"+name+"/cgroup.procs", os.O_WRONLY, 0)
			if err != nil {
				continue
			}
			_, _ = f.WriteString("0") // itself
			f.Close()
		}
	}
}
