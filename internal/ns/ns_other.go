//go:build !linux

// Package ns makes network namespaces and enters them; Linux only.
package ns
