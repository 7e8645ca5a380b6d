package check

import (
	"strings"

	"github.com/cnibench/cnibench/internal/text"
)

//go:generate go test . -run TestPage -update

// All lists the checks, in the order in which they run: mtu first, for it must
// find the path before anybody has taught the kernel its size.
func All() []Check {
	return []Check{mtu{}, encryption{}, policy{pace: usualPace, hire: hire}}
}

// ParseNames are the checks of a list as a user gives it, "mtu,encryption"; all is
// every one. An unknown name is an error that names the nearest.
func ParseNames(list string) ([]Check, error) {
	if list == "all" {
		return All(), nil
	}
	wanted := map[string]bool{}
	for _, name := range strings.Split(list, ",") {
		c, err := text.Find("check", strings.TrimSpace(name), All(), func(c Check) string { return c.Info().Name })
		if err != nil {
			return nil, err
		}
		wanted[c.Info().Name] = true
	}
	var checks []Check
	for _, c := range All() {
		if wanted[c.Info().Name] {
			checks = append(checks, c)
		}
	}
	return checks, nil
}
