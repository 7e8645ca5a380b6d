package kube

import (
	"net/url"
	"regexp"
	"strings"
)

// word is what may be the name of a host.
var word = regexp.MustCompile(`[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?`)

// Anonymous implements arena.Arena. It returns the text with the nodes under the names that reports have, and
// with the API server under none of its own.
func (a *Arena) Anonymous(text string) string {
	names := map[string]string{}
	if at, err := url.Parse(a.cl.Config.Host); err == nil && at.Hostname() != "" {
		names[at.Hostname()] = "api-server"
	}
	for _, n := range a.list {
		names[n.real] = n.name
	}
	for _, n := range a.list {
		delete(names, n.name) // a node that is really called so has no name to hide
	}
	text = word.ReplaceAllStringFunc(text, func(name string) string {
		if other, hidden := names[name]; hidden {
			return other
		}
		return name
	})
	for _, n := range a.list {
		text = strings.ReplaceAll(text, n.name+" ("+n.name+")", n.name) // as n.String has it
	}
	return text
}
