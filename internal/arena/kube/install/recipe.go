package install

import (
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/text"
)

// Version returns the version in which Install installs the contender: that of the version
// set, or if a mirror holds the chart only in another version, that version. The error is
// an *arena.Unsupported.
func (i *Installer) Version(c *contender.Contender) (string, error) {
	k := c.Kube
	switch {
	case k == nil:
		return "", newUnsupported("leave "+c.ID+" out, or run without --install", "%s is no pod network that could be installed", c.ID)
	case k.None != "":
		return "", newUnsupported(k.Remedy, "%s", strings.TrimSuffix(k.None, "."))
	}
	v, ok := k.Versions[i.o.Versions]
	if !ok {
		sets := slices.Sorted(maps.Keys(k.Versions))
		return "", newUnsupported("install it with --versions "+strings.Join(sets, " or "), "%s has no versions of the set %s", c.ID, i.o.Versions)
	}
	for _, s := range k.StepsOf(i.o.Versions) {
		if s.Chart == nil {
			continue
		}
		version, err := i.source.chartVersion(s.Chart, v.Version)
		if err != nil {
			return "", newUnsupported("add it to the mirror, or leave out --mirror", "%s: %v", c.ID, err)
		}
		return version, nil
	}
	return v.Version, nil
}

// joinList joins a dozen of the things, and says how many more there are.
func joinList(things []string) string { return strings.Join(text.Shorten(things, 12), "; ") }
