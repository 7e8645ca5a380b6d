//go:build !linux

package fingerprint

// readLink knows no interface: nothing is measured on other systems.
func readLink(string) (link, bool) { return link{}, false }
