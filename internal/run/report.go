package run

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/assemble"
	"github.com/cnibench/cnibench/internal/analysis/findings"
	"github.com/cnibench/cnibench/internal/analysis/recommend"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/published"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/study"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/text/console"
	"github.com/cnibench/cnibench/internal/trace"
	"github.com/cnibench/cnibench/studies"
)

// report prints the table and writes the page of the run in dir. complete says that
// nothing interrupted the run.
func (j *Job) report(dir string, complete bool) error {
	rec, err := result.Load(dir)
	if err != nil {
		return err
	}
	if complete && j.request.GuestFollows && len(leftToGuest(&rec.Run)) > 0 {
		return nil // the process that leads reports, after the guest has run the rest
	}
	r := Assemble(dir, rec, analysis.Options{})
	out := j.request.Stdout
	var page bytes.Buffer
	if err := report.Write(&page, string(report.HTML), r, report.Options{}); err != nil {
		return err
	}
	err = result.WriteFile(dir, "report.html", func(w io.Writer) error { _, err := page.WriteTo(w); return err })
	if werr := report.Write(out, string(report.Text), r, report.Options{Color: console.UseColor(out), Width: console.Width(out)}); werr != nil {
		return errors.Join(err, werr)
	}
	fmt.Fprintf(out, "\nReport: %s\nIn a browser: cnibench explore %s\n", filepath.Join(dir, "report.html"), text.ShellWord(dir))
	if err != nil {
		return err
	}
	if complete {
		return NoneValid(dir, rec)
	}
	return nil
}

// NoneValid returns an error with exit.Gate if no part of the run in dir, whose
// native record is rec, has a valid sample of a step.
func NoneValid(dir string, rec *result.Record) error {
	valid := func(s result.Sample) bool { return s.Verdict == result.Valid && s.Step != result.SetupStep }
	part, err := LoadPart(dir)
	if slices.ContainsFunc(rec.Samples, valid) || err == nil && part != nil && slices.ContainsFunc(part.Samples, valid) {
		return nil
	}
	return exit.With(exit.Gate, errors.New("no sample is valid; the findings say why"))
}

// LoadPart returns the record of the part that a guest measured of the run in dir.
// It is nil if there is none.
func LoadPart(dir string) (*result.Record, error) {
	part := filepath.Join(dir, PartDir)
	if _, err := os.Stat(filepath.Join(part, "run.json")); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return result.Load(part)
}

// Assemble analyses the run in dir, whose native record is rec, and the part that a
// guest measured, each with the traces of its nodes, and joins both reports.
func Assemble(dir string, rec *result.Record, opt analysis.Options) *analysis.Report {
	r := addParts(dir, assembleOne(dir, rec, opt), opt)
	if id := rec.Run.Plan.Settings["study"]; id != "" {
		_ = ShowStudy(r, id) // a study that this version does not have leaves no pictures
	}
	return r
}

func assembleOne(dir string, rec *result.Record, opt analysis.Options) *analysis.Report {
	traces, faults := trace.Load(dir, rec)
	rec.Faults = append(rec.Faults, faults...)
	opt.Traces = traces
	if cat, err := LoadCatalogue(); err == nil {
		opt.Catalogue = Capabilities(cat.Contenders)
	}
	r := assemble.Report(rec, opt)
	// The recommendation is by the default weights.
	wish := recommend.Wish{Catalogue: opt.Catalogue}
	r.Capabilities = recommend.Capabilities(rec, wish.Catalogue)
	r.Recommendation = recommend.Choose(rec, wish)
	r.Advice, _ = recommend.Advise(rec, wish) // a test reads the scenarios of this version
	return r
}

// ShowStudy adds a study's pictures and published figures to the report. The error is a
// *text.UnknownError.
func ShowStudy(r *analysis.Report, id string) error {
	all, err := study.Load(studies.FS)
	if err != nil {
		return err
	}
	s, err := study.Find(all, id)
	if err != nil {
		return err
	}
	r.Study = s.Shown()
	figures, err := published.Studies()
	if err != nil {
		return err
	}
	if figures, err = published.Select(figures, s.Published); err != nil {
		return err
	}
	published.Attach(r, figures)
	return nil
}

// addParts joins the report of the native part with that of the guest's part, if there
// is one.
func addParts(dir string, r *analysis.Report, opt analysis.Options) *analysis.Report {
	part := filepath.Join(dir, PartDir)
	rec, err := LoadPart(dir)
	switch {
	case err != nil:
		r.Findings = append(r.Findings, findings.PartUnreadable(fmt.Sprintf("the part of the run under another kernel can't be read: %v", err)))
		return r
	case rec == nil:
		return r
	case empty(rec): // the part has only the reasons why the guest can run no contender
		merged := assemble.Merge(r, &analysis.Report{Unsupported: rec.Run.Unsupported}, PartDir)
		merged.Parts = r.Parts
		return merged
	}
	return assemble.Merge(r, assembleOne(part, rec, opt), PartDir)
}

// Capabilities returns what the catalogue says of each need.
func Capabilities(list []*contender.Contender) []analysis.Capability {
	var out []analysis.Capability
	for _, c := range list {
		f := c.Features
		add := func(need, value string) {
			out = append(out, analysis.Capability{Contender: c.ID, Name: need, Value: value, Source: "catalogue"})
		}
		addBool := func(need string, has bool) { add(need, map[bool]string{true: "yes", false: "no"}[has]) }
		addBool("policy", f.Policy.Ingress)
		addBool("egress-policy", f.Policy.Egress)
		addBool("l7", f.Policy.L7)
		if f.Encryption == "none" || f.Encryption == "" {
			add("encryption", "no")
		} else {
			add("encryption", f.Encryption)
		}
		addBool("key-rotation", f.KeyRotation)
		addBool("kube-proxy-free", f.KubeProxyReplacement)
		addBool("ipv6", f.IPv6)
		for _, arch := range []string{"arm64", "ppc64le", "s390x"} {
			addBool(arch, slices.Contains(f.Architectures, arch))
		}
		if c.Datapath.MTU == "auto" || c.Datapath.MTU == "manual" {
			addBool("jumbo-auto", c.Datapath.MTU == "auto")
		}
		addBool("observability", f.Observability != "")
		addBool(analysis.Active, f.Status != "retired")
		addBool(analysis.Whole, c.Product != "kernel")
	}
	return out
}
