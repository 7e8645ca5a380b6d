// Package contenders holds the contender files, one YAML each, named after the
// contender's id. It may hold nothing else: package internal/contender reads
// and checks them. To add one, copy the nearest; CONTRIBUTING.md says how.
// Next: flannel-vxlan.yaml, internal/contender/read.go.
package contenders

import "embed"

//go:generate go test ../internal/contender -run TestPages -update

// FS is the catalogue as it was when the binary was built.
//
//go:embed *.yaml
var FS embed.FS
