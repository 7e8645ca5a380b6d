// Package nearest finds the name that a user probably meant.
package nearest

import (
	"fmt"
	"sort"

	"github.com/agext/levenshtein"
)

// Name is the nearest of names to what was given, or "" if none is near
// enough to be worth suggesting.
func Name(given string, names []string) string {
	// Two edits are a typing mistake in any word, two letters swapped among
	// them; in long names more may be wrong.
	const typo, alike = 2, 0.4
	best, bestScore := "", 0.0
	for _, name := range names {
		score := levenshtein.Match(given, name, nil)
		if score > bestScore && (score >= alike || levenshtein.Distance(given, name, nil) <= typo && len(given) > typo) {
			best, bestScore = name, score
		}
	}
	return best
}

// Unknown is the error for a name that is none of names: it says the nearest
// one, or lists all when none is near.
func Unknown(what, given string, names []string) error {
	if n := Name(given, names); n != "" {
		return &Error{fmt.Sprintf("unknown %s %q; did you mean %q?", what, given, n)}
	}
	sorted := append([]string(nil), names...)
	sort.Strings(sorted)
	return &Error{fmt.Sprintf("unknown %s %q; there are: %v", what, given, sorted)}
}

// Find is the one of list that has the name; what says what the list is of. Its
// error is an *Error.
func Find[T any](what, name string, list []T, nameOf func(T) string) (T, error) {
	names := make([]string, len(list))
	for i, x := range list {
		if names[i] = nameOf(x); names[i] == name {
			return x, nil
		}
	}
	var none T
	return none, Unknown(what, name, names)
}

// Error is an unknown name: wrong usage (exit 2).
type Error struct{ msg string }

func (e *Error) Error() string { return e.msg }
