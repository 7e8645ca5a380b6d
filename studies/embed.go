// Package studies holds the published studies that cnibench can repeat, one YAML
// each, named after the study's id. It may hold nothing else: package
// internal/study reads and checks them. To add one, copy 2019.yaml. Next:
// 2019.yaml, internal/study/study.go.
package studies

import "embed"

//go:generate go test ../internal/study -run TestPage -update

// FS is the studies as they were when the binary was built.
//
//go:embed *.yaml
var FS embed.FS
