//go:build linux

package plain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
)

// Sysctl sets kernel parameters in every node's namespace. The piece's parameters
// are the keys. Only keys of net.* are allowed, because a namespace has its own
// value of no other key. A key that this kernel lacks is left out and reported.
var Sysctl = wire.Transport{
	Name:    "sysctl",
	AnyKey:  true,
	Summary: "kernel parameters of every node",
	Setup: func(ctx context.Context, f *wire.Fabric, p wire.Params) error {
		keys := slices.Sorted(maps.Keys(p))
		for _, key := range keys {
			if !strings.HasPrefix(key, "net.") || strings.Contains(key, "/") {
				return fmt.Errorf("sysctl %s: only keys of net.* belong to a namespace", key)
			}
		}
		for _, key := range keys {
			for _, n := range f.Nodes {
				err := n.NS.SetSysctl(key, fmt.Sprint(p[key]))
				if errors.Is(err, os.ErrNotExist) {
					f.Left = append(f.Left, fmt.Sprintf("the kernel has no %s (module not loaded?), which the product sets to %v: packets take a shorter way than on its nodes", key, p[key]))
					break
				}
				if err != nil {
					return err
				}
			}
		}
		return ctx.Err()
	},
}
