package vm

import (
	"fmt"
	"regexp"
	"strconv"
)

// qemuVersion is a version of QEMU: major and minor.
type qemuVersion struct{ major, minor int }

var versionText = regexp.MustCompile(`version (\d+)\.(\d+)`)

// parseVersion parses the output of QEMU's --version.
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

// emulatesSeveralCPUs reports whether this QEMU can emulate several CPUs at once. Before 8.1
// QEMU did not lock a page of code while translating it. A CPU could then keep the breakpoint
// with which another CPU patched the kernel, and the kernel died when networks came and went
// ("accel/tcg: Always lock pages before translation").
func (v qemuVersion) emulatesSeveralCPUs() bool {
	return v.major > 8 || v.major == 8 && v.minor >= 1
}
