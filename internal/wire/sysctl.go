//go:build linux

package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
)

// sysctl sets kernel parameters in every node's namespace; the parameters are
// the keys. A key that this kernel lacks is left out: the fingerprint shows
// what holds.
var sysctl = Transport{
	Name:    "sysctl",
	AnyKey:  true,
	Summary: "kernel parameters of every node",
	Setup: func(ctx context.Context, f *Fabric, p Params) error {
		keys := make([]string, 0, len(p))
		for key := range p {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		for _, n := range f.Nodes {
			for _, key := range keys {
				if err := ifPresent(n.NS.SetSysctl(key, fmt.Sprint(p[key]))); err != nil {
					return err
				}
			}
		}
		return ctx.Err()
	},
}

// ifPresent forgives a key that the kernel does not have.
func ifPresent(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
