package fingerprint

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// decisive are the keys, and the beginnings of keys (ending in a dot), that
// can explain why two runs differ. Sysctls are not among them: most say
// nothing of a result, and a contender sets its own.
var decisive = []string{"kernel.", "cpu.", "memory.", "virt.", "uplink.", "tcp.congestion_control", "tool."}

// Differences names the keys that can explain a difference between results
// measured in a and b, sorted. A key that only one side has is a difference.
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

// ErrOtherMachine is the kind of SameMachine's error.
var ErrOtherMachine = errors.New("not the machine that the run began on")

// SameMachine refuses to mix samples of two kernels or CPUs in one run: then
// is the run's fingerprint, now is this machine's. A key that one side lacks
// proves nothing. Errors: ErrOtherMachine.
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
