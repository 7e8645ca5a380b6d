// Package schema holds the JSON schemas (draft 2020-12) of what cnibench
// writes, for tests and for people who read its files with other programs. It
// may hold nothing else. Next: docs/format.md.
package schema

import "embed"

// FS holds the schemas: run-1.schema.json, sample-1.schema.json,
// report-1.schema.json.
//
//go:embed *.json
var FS embed.FS
