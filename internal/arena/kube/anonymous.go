package kube

import (
	"net/url"
	"regexp"
	"strings"
)

// word matches a text that can be a host's name.
var word = regexp.MustCompile(`[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?`)

// Anonymous implements arena.Arena. It replaces the names of nodes by those that reports
// use, and the name of the API server by "api-server".
func (a *Arena) Anonymous(text string) string {
	names := map[string]string{}
	if at, err := url.Parse(a.cl.Config.Host); err == nil && at.Hostname() != "" {
		names[at.Hostname()] = "api-server"
	}
	for _, n := range a.list {
		names[n.realName] = n.name
	}
	for _, n := range a.list {
		delete(names, n.name) // a node whose real name is that of reports
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

// RealName returns the cluster's own name of a node, or of the node of a pod with the pod's:
// "worker-a" for "node1", "worker-a pod1" for "node1-pod1".
func (a *Arena) RealName(endpoint string) string {
	node, pod, _ := strings.Cut(endpoint, "-")
	for _, n := range a.list {
		if n.name == node {
			return strings.TrimSpace(n.realName + " " + pod)
		}
	}
	return endpoint
}

// RestoreNames is the opposite of Anonymous: it gives nodes and pods in a text for the user's own
// eyes the names that the cluster has for them.
func (a *Arena) RestoreNames(text string) string { return word.ReplaceAllStringFunc(text, a.RealName) }
