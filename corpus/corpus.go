// Package corpus holds the plants of lab, for the self-test. It may hold nothing else. Next:
// README.md.
package corpus

import "embed"

// Lab holds the faults that are planted in the lab: lab/NAME.yaml.
//
//go:embed lab/*.yaml
var Lab embed.FS
