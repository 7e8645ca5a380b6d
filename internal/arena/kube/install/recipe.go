package install

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/contender"
)

// version is that of the contender in the asked set, or the one of the mirror
// where the mirror has exactly one other of its chart. Errors:
// *arena.Unsupported.
func (i *Installer) version(c *contender.Contender) (string, error) {
	k := c.Kube
	switch {
	case k == nil:
		return "", unsupported("leave "+c.ID+" out, or run without --install", "%s is no pod network that could be installed", c.ID)
	case k.None != "":
		return "", unsupported(k.Remedy, "%s", strings.TrimSuffix(k.None, "."))
	}
	v, ok := k.Versions[i.o.Versions]
	if !ok {
		sets := slices.Sorted(maps.Keys(k.Versions))
		return "", unsupported("install it with --versions "+strings.Join(sets, " or "), "%s has no versions of the set %s", c.ID, i.o.Versions)
	}
	for _, s := range k.StepsOf(i.o.Versions) {
		if s.Chart == nil {
			continue
		}
		version, err := i.source.has(s.Chart, v.Version)
		if err != nil {
			return "", unsupported("add it to the mirror, or leave out --mirror", "%s: %v", c.ID, err)
		}
		return version, nil
	}
	return v.Version, nil
}

// listing writes out at most a dozen things.
func listing(things []string) string {
	const most = 12
	if len(things) <= most {
		return strings.Join(things, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(things[:most], "; "), len(things)-most)
}
