package fingerprint

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// decisive lists keys, and beginnings of keys that end in a dot, which can explain why two runs
// differ. Sysctls are not among them: most do not affect a result, and a contender sets its
// own.
var decisive = []string{"kernel.", "cpu.", "memory.", "virt.", "uplink.", "tcp.congestion_control", "tool."}

// Differences returns the keys that can explain a difference between results measured in a and
// b, sorted. A key that only one side has counts as different.
func Differences(a, b map[string]string) []string {
	keys := maps.Clone(a)
	if keys == nil {
		keys = map[string]string{}
	}
	maps.Copy(keys, b)
	var differ []string
	for key := range keys {
		va, inA := a[key]
		vb, inB := b[key]
		if isDecisive(key) && (va != vb || inA != inB) {
			differ = append(differ, key)
		}
	}
	slices.Sort(differ)
	return differ
}

func isDecisive(key string) bool {
	return slices.ContainsFunc(decisive, func(d string) bool {
		return key == d || strings.HasSuffix(d, ".") && strings.HasPrefix(key, d)
	})
}

// ErrOtherMachine means that SameMachine found another kernel or CPU.
var ErrOtherMachine = errors.New("not the machine that the run began on")

// SameMachine returns ErrOtherMachine if samples of the two machines must not be in one run,
// because the kernels or CPUs differ. then is the run's fingerprint, now is this machine's. A
// key that one side lacks counts as equal.
func SameMachine(then, now map[string]string) error {
	var differ []string
	for _, key := range []string{"kernel.release", "cpu.model", "cpu.online"} {
		was, knownThen := then[key]
		is, knownNow := now[key]
		if knownThen && knownNow && was != is {
			differ = append(differ, fmt.Sprintf("%s was %q, is %q", key, was, is))
		}
	}
	if differ == nil {
		return nil
	}
	return fmt.Errorf("%w: %s; resume it there, or start a new run here and compare the two with `cnibench compare`",
		ErrOtherMachine, strings.Join(differ, ", "))
}
