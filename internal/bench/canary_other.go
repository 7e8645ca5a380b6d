//go:build !linux

package bench

import "time"

// canary is for Linux only.
type canary struct{}

func startCanary(int) *canary { return nil }

func (*canary) takeAbsence() (absence time.Duration, disturbs bool) { return 0, false }

func (*canary) stop() {}
