//go:build !linux

package cli

import "github.com/cnibench/cnibench/internal/vm"

func ownTerminal(*vm.Config) (restore func(), err error) { return func() {}, nil }
