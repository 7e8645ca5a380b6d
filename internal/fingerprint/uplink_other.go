//go:build !linux

package fingerprint

// readLink finds no interface: other systems measure nothing.
func readLink(string) (link, bool) { return link{}, false }
