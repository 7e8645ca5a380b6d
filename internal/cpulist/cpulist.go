// Package cpulist reads and writes lists of numbers as the kernel does in its
// files: "0-3,8". It knows nothing of the machine.
package cpulist

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Parse reads numbers and ranges of them with commas between, in any order; an
// empty text has none. Errors: what is no number or range from 0 to most.
func Parse(text string, most int) ([]int, error) {
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
		if first < 0 || last < first || last > most {
			return nil, fmt.Errorf("%q: %s is no number or range up to %d", text, part, most)
		}
		for n := first; n <= last; n++ {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}

// Format is the shortest text that Parse reads as the numbers.
func Format(numbers []int) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(numbers)))
	var parts []string
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, strconv.Itoa(sorted[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", sorted[i], sorted[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
