//go:build !linux

package agent

import (
	"errors"

	"github.com/cnibench/cnibench/internal/tune"
)

func trialMachine(bool) (*tune.Machine, error) { return nil, errors.New("a trial needs Linux") }
