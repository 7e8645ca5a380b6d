package vm

import (
	"fmt"
	"regexp"
	"strconv"
)

// qemuVersion is QEMU's, major and minor.
type qemuVersion struct{ major, minor int }

var versionText = regexp.MustCompile(`version (\d+)\.(\d+)`)

// parseVersion reads what QEMU says with --version.
func parseVersion(text string) (qemuVersion, error) {
	m := versionText.FindStringSubmatch(text)
	if m == nil {
		return qemuVersion{}, fmt.Errorf("%s --version printed no version: %.60q", program, text)
	}
	major, majorErr := strconv.Atoi(m[1])
	minor, minorErr := strconv.Atoi(m[2])
	if majorErr != nil || minorErr != nil {
		return qemuVersion{}, fmt.Errorf("%s --version: %q is no version", program, m[0])
	}
	return qemuVersion{major, minor}, nil
}

// emulatesSeveralCPUs says whether this QEMU can emulate several CPUs at once.
// Before 8.1 it did not lock a page of code while it translated it, so that
// a CPU could keep the breakpoint with which another one was patching the
// kernel, and the kernel died of it when networks came and went ("accel/tcg:
// Always lock pages before translation").
func (v qemuVersion) emulatesSeveralCPUs() bool {
	return v.major > 8 || v.major == 8 && v.minor >= 1
}
