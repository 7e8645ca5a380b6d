//go:build !linux

package plant

import (
	"errors"
	"net/netip"

	"github.com/cnibench/cnibench/internal/unit"
)

// Plant fails.
func Plant(Fault, netip.Addr, unit.BitRate) error { return errors.New("plant: needs Linux") }
