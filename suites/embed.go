// Package suites holds the suite files, one YAML each, named after the suite's
// id. It may hold nothing else: package internal/suite reads and checks them.
// To add one, copy quick.yaml. Next: quick.yaml, internal/suite/read.go.
package suites

import "embed"

//go:generate go test ../internal/suite -run TestPage|TestSuites -update

// FS is the suites as they were when the binary was built.
//
//go:embed *.yaml
var FS embed.FS
