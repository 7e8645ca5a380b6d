//go:build !linux

package collect

import (
	"errors"

	"github.com/cnibench/cnibench/internal/diagnose"
)

// Snapshot fails.
func Snapshot() (diagnose.Snapshot, error) {
	return diagnose.Snapshot{}, errors.New("a snapshot needs Linux")
}
