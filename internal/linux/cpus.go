// Package linux reads lists of CPUs and makes network namespaces and enters them. A
// namespace lives as long as its file is open or a process is in it: nothing is mounted,
// so nothing is left behind. The package sets no addresses; package wire does. Next:
// cpus.go, netns_linux.go and netns_start_linux.go, which starts processes inside.
package linux

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseCPUs reads a list of numbers as the kernel writes it in its files, "0-3,8": numbers and ranges of them with commas between, in any order; an
// empty text has none. Errors: what is no number or range from 0 to most.
func ParseCPUs(text string, maximum int) ([]int, error) {
	var numbers []int
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		last, err := strconv.Atoi(to)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		if first < 0 || last < first || last > maximum {
			return nil, fmt.Errorf("%q: %s is no number or range up to %d", text, part, maximum)
		}
		for n := first; n <= last; n++ {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}

// FormatCPUs returns the shortest text that ParseCPUs reads as the numbers.
func FormatCPUs(numbers []int) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(numbers)))
	var parts []string
	for first := 0; first < len(sorted); {
		last := first // of the numbers that follow one another from first on
		for last+1 < len(sorted) && sorted[last+1] == sorted[last]+1 {
			last++
		}
		if first == last {
			parts = append(parts, strconv.Itoa(sorted[first]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", sorted[first], sorted[last]))
		}
		first = last + 1
	}
	return strings.Join(parts, ",")
}
