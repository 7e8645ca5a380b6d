// Package suites holds the suite files that come with the program. Next:
// internal/suite reads them.
package suites

import "embed"

// FS holds one YAML file per suite.
//
//go:embed *.yaml
var FS embed.FS
