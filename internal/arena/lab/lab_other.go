//go:build !linux

package lab

import (
	"context"
	"os"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
)

// errNotLinux says why there is no lab.
var errNotLinux = &arena.Unsupported{
	Reason: "the lab needs Linux network namespaces",
	Remedy: "run it on a Linux machine; reading, reporting and comparing work here",
}

// Contained is false where there are no namespaces.
func Contained() bool { return false }

// Contain says that this is not Linux.
func Contain(context.Context, []string) (int, error) { return 1, errNotLinux }

// ContainProgram says that this is not Linux.
func ContainProgram(context.Context, Program) (int, error) { return 1, errNotLinux }

// Inherited are none where there is no lab.
func Inherited(int) []*os.File { return nil }

// Enter says that this is not Linux.
func Enter() error { return errNotLinux }

// HidesPath is false where there is no lab.
func HidesPath(string) bool { return false }

// New says that this is not Linux.
func New(Options) (arena.Arena, error) { return nil, errNotLinux }

// Probe says that this is not Linux.
func Probe(...string) ([]Feature, error) { return nil, errNotLinux }

// CPUs are not known where there is no lab.
func CPUs() []int { return []int{0} }

// NewCustom says that this is not Linux.
func NewCustom(string, []byte, string) (*CustomAttach, error) { return nil, errNotLinux }

// Contender returns the user's configuration as a contender.
func (c *CustomAttach) Contender() *contender.Contender { return &contender.Contender{ID: CustomID} }

// KernelRelease is unknown where there is no lab.
func KernelRelease() string { return "" }
