package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// materials writes for each target which modules are linked into its program,
// by what the program itself says.
func (r *release) materials() error {
	for _, t := range r.targets {
		bom, err := r.bom(t)
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		out, err := os.Create(filepath.Join(r.dist, r.name(t.String()+".cdx.json")))
		if err != nil {
			return err
		}
		encoder := cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON)
		if err := errors.Join(encoder.SetPretty(true).SetEscapeHTML(false).Encode(bom), out.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) bom(t target) (*cyclonedx.BOM, error) {
	info, err := buildinfo.ReadFile(r.program(t))
	if err != nil {
		return nil, err
	}
	main := purl(info.Main.Path, "v"+r.number(), "?goarch="+t.arch+"&goos="+t.os)
	var parts []cyclonedx.Component
	standard := &debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range append([]*debug.Module{standard}, info.Deps...) {
		id := purl(m.Path, m.Version, "")
		part := cyclonedx.Component{Type: cyclonedx.ComponentTypeLibrary, BOMRef: id, PackageURL: id, Name: m.Path, Version: m.Version}
		if m.Replace != nil { // by scripts/build-small alone: go.mod replaces nothing
			part.Pedigree = &cyclonedx.Pedigree{Notes: "without what cnibench never uses (docs/adr/0003)"}
		}
		parts = append(parts, part)
	}
	refs := make([]string, 0, len(parts))
	for _, p := range parts {
		refs = append(refs, p.BOMRef)
	}
	slices.Sort(refs)
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: r.time.Format(time.RFC3339),
		Component: &cyclonedx.Component{
			Type: cyclonedx.ComponentTypeApplication, BOMRef: main, PackageURL: main, Name: "cnibench", Version: r.number(),
			Licenses:   &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
			Properties: &[]cyclonedx.Property{{Name: "commit", Value: r.commit}},
		},
	}
	bom.Components = &parts
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main, Dependencies: &refs}}
	return bom, nil
}

// purl is a module's package URL.
func purl(path, version, qualifiers string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B") + qualifiers
}
