package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/assemble"
	"github.com/cnibench/cnibench/internal/analysis/recommend"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/exit"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/trace"
)

// noneValid is the error of a run that was measured, but has no valid sample of
// a step in any of its parts.
func NoneValid(dir string, rec *result.Record) error {
	valid := func(s result.Sample) bool { return s.Verdict == result.Valid && s.Step != result.SetupStep }
	part, err := LoadPart(dir)
	if slices.ContainsFunc(rec.Samples, valid) || err == nil && part != nil && slices.ContainsFunc(part.Samples, valid) {
		return nil
	}
	return exit.With(exit.Gate, errors.New("no sample is valid; the findings say why"))
}

// loadPart is the part of the run in dir that a guest measured, nil without one.
func LoadPart(dir string) (*result.Record, error) {
	part := filepath.Join(dir, PartDir)
	if _, err := os.Stat(filepath.Join(part, "run.json")); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return result.Load(part)
}

// assemble analyses the run in dir and its parts, each by itself, together
// with the traces of their nodes.
func Assemble(dir string, rec *result.Record, opt analysis.Options) *analysis.Report {
	return addParts(dir, assembleOne(dir, rec, opt), opt)
}

func assembleOne(dir string, rec *result.Record, opt analysis.Options) *analysis.Report {
	traces, faults := trace.Load(dir, rec)
	rec.Faults = append(rec.Faults, faults...)
	opt.Traces = traces
	if cat, err := LoadCatalogue(); err == nil {
		opt.Catalogue = Capabilities(cat.Contenders)
	}
	r := assemble.Report(rec, opt)
	advise(r, rec)
	return r
}

// addParts joins the reports of a run's parts with its own.
func addParts(dir string, r *analysis.Report, opt analysis.Options) *analysis.Report {
	part := filepath.Join(dir, PartDir)
	rec, err := LoadPart(dir)
	switch {
	case err != nil:
		r.Findings = append(r.Findings, analysis.Finding{Severity: analysis.Error, Code: "part_unreadable",
			Text: fmt.Sprintf("the part of the run under another kernel can't be read: %v", err), Next: "See " + part + "."})
		return r
	case rec == nil:
		return r
	case empty(rec): // it says why, and no more
		merged := assemble.Merge(r, &analysis.Report{Unsupported: rec.Run.Unsupported}, PartDir)
		merged.Parts = r.Parts
		return merged
	}
	return assemble.Merge(r, assembleOne(part, rec, opt), PartDir)
}

// advise fills in what the page draws of capabilities and of the choice by the
// criteria's own weights; nothing without a catalogue.
func advise(r *analysis.Report, rec *result.Record) {
	cat, err := LoadCatalogue()
	if err != nil {
		return
	}
	wish := recommend.Wish{Catalogue: Capabilities(cat.Contenders)}
	r.Capabilities = recommend.Capabilities(rec, wish.Catalogue)
	r.Recommendation = recommend.Choose(rec, wish)
}

// Capabilities are what the catalogue says of each need.
func Capabilities(list []*contender.Contender) []analysis.Capability {
	var out []analysis.Capability
	for _, c := range list {
		f := c.Features
		say := func(need, value string) {
			out = append(out, analysis.Capability{Contender: c.ID, Name: need, Value: value, Source: "catalogue"})
		}
		yes := func(need string, is bool) { say(need, map[bool]string{true: "yes", false: "no"}[is]) }
		yes("policy", f.Policy.Ingress)
		yes("egress-policy", f.Policy.Egress)
		yes("l7", f.Policy.L7)
		if f.Encryption == "none" || f.Encryption == "" {
			say("encryption", "no")
		} else {
			say("encryption", f.Encryption)
		}
		yes("key-rotation", f.KeyRotation)
		yes("kube-proxy-free", f.KubeProxyReplacement)
		yes("ipv6", f.IPv6)
		for _, arch := range []string{"arm64", "ppc64le", "s390x"} {
			yes(arch, slices.Contains(f.Architectures, arch))
		}
		yes("observability", f.Observability != "")
		yes(analysis.Active, f.Status != "retired")
	}
	return out
}
