//go:build !linux

package record

import "os"

// HideVariable removes a variable from what later commands get.
func HideVariable(name string) error { return os.Unsetenv(name) }
