// Package text is for what people read: it finds the name that a user probably meant,
// and makes text that others wrote fit for a terminal. It prints nothing itself (package
// console does) and may depend on nothing of ours. Next: names.go and safe.go.
package text

import (
	"fmt"
	"sort"

	"github.com/agext/levenshtein"
)

// Nearest returns the name that is nearest to what was given, or "" if none is near
// enough to be worth suggesting.
func Nearest(given string, names []string) string {
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

// Unknown returns the error for a name that is none of names: it says the nearest
// one, or lists all if none is near. It is an *UnknownError.
func Unknown(what, given string, names []string) error {
	if n := Nearest(given, names); n != "" {
		return &UnknownError{fmt.Sprintf("unknown %s %q; did you mean %q?", what, given, n)}
	}
	sorted := append([]string(nil), names...)
	sort.Strings(sorted)
	return &UnknownError{fmt.Sprintf("unknown %s %q; there are: %v", what, given, sorted)}
}

// Find returns the element of list that has the name; what says what the elements are.
// Its error is an *UnknownError.
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

// UnknownError is an unknown name: wrong usage (exit 2).
type UnknownError struct{ msg string }

func (e *UnknownError) Error() string { return e.msg }
