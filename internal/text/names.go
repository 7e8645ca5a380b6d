// Package text is for what people read: it finds the name that a user probably meant,
// and makes text that others wrote fit for a terminal. It prints nothing itself (package
// console does) and may depend on nothing of ours. Next: names.go and safe.go.
package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// otherWords are words that people use for a name of ours.
var otherWords = map[string]string{
	"cni": "contenders", "cnis": "contenders", "networks": "contenders", "plugins": "contenders", "settings": "tunings", "tests": "suites",
	"cluster": "kube", "k8s": "kube", "kubernetes": "kube", "guest": "microvm", "qemu": "microvm", "vm": "microvm",
	"junit-xml": "junit", "markdown": "md", "prometheus": "openmetrics",
}

// Nearest returns the one of names that is nearest to given, or "" if none is near enough to
// be worth suggesting.
func Nearest(given string, names []string) string {
	if other := otherWords[strings.ToLower(given)]; slices.Contains(names, other) {
		return other
	}
	const alike = 0.4 // share of a name that must agree
	best, bestScore := "", 0.0
	for _, name := range names {
		score := levenshtein.Match(given, name, nil)
		if score > bestScore && (score >= alike || isTypo(given, name)) {
			best, bestScore = name, score
		}
	}
	return best
}

// isTypo reports whether given is name with a typing mistake: two edits, in a short word one
// edit or two swapped letters.
func isTypo(given, name string) bool {
	switch distance := levenshtein.Distance(given, name, nil); {
	case len(given) < 3 || distance > 2:
		return false
	case len(given) > 3 || distance < 2:
		return true
	}
	return sortedLetters(given) == sortedLetters(name)
}

func sortedLetters(word string) string {
	letters := []byte(word)
	slices.Sort(letters)
	return string(letters)
}

// family returns the names whose first part, up to a hyphen, is given or given with a typing
// mistake: for "flanel" all of flannel-…; nil if a name by itself is as near.
func family(given string, names []string) []string {
	var list []string
	for _, name := range names {
		first, _, several := strings.Cut(name, "-")
		if !isTypo(given, first) && given != first {
			continue
		}
		if !several {
			return nil
		}
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// Unknown returns the error for a name that is none of names. It says the nearest one, the
// names that begin with it, or all if none is near. The
// error is an *UnknownError.
func Unknown(what, given string, names []string) error {
	if list := family(given, names); len(list) > 1 {
		return &UnknownError{fmt.Sprintf("unknown %s %q; did you mean one of: %s?", what, given, strings.Join(list, ", "))}
	}
	if n := Nearest(given, names); n != "" {
		return &UnknownError{fmt.Sprintf("unknown %s %q; did you mean %q?", what, given, n)}
	}
	if len(names) == 0 {
		return &UnknownError{fmt.Sprintf("unknown %s %q; there is none", what, given)}
	}
	return &UnknownError{fmt.Sprintf("unknown %s %q; there are: %s", what, given, strings.Join(slices.Sorted(slices.Values(names)), ", "))}
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

// Shorten returns things, at most max of them: if there are more, the last element counts
// the rest, as "5 more". It never counts one.
func Shorten(things []string, max int) []string {
	if len(things) <= max {
		return things
	}
	return append(things[:max-1:max-1], fmt.Sprintf("%d more", len(things)-max+1))
}
