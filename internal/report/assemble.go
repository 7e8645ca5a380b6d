package report

import (
	"errors"
	"slices"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/assemble"
	"github.com/cnibench/cnibench/internal/analysis/recommend"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/published"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/study"
	tracefiles "github.com/cnibench/cnibench/internal/trace"
	"github.com/cnibench/cnibench/studies"
)

// Assemble analyses the run in dir, whose record is rec, with the traces of its nodes, the
// recommendation by the usual weights, and the pictures of the study that it repeats.
func Assemble(dir string, rec *result.Record, opt analysis.Options) *analysis.Report {
	whole := *rec
	traces, faults := tracefiles.Load(dir, rec)
	whole.Faults, rec = slices.Concat(rec.Faults, faults), &whole
	opt.Traces = traces
	if list, err := contender.Load(contenders.FS); err == nil { // else nothing is known of what contenders can do
		opt.Catalogue = Capabilities(list)
	}
	r := assemble.Report(rec, opt)
	// The recommendation is by the default weights.
	wish := recommend.Wish{Catalogue: opt.Catalogue}
	r.Capabilities = recommend.Capabilities(rec, wish.Catalogue)
	r.Recommendation = recommend.Choose(rec, wish)
	r.Advice, _ = recommend.Advise(rec, wish) // a test reads the scenarios of this version
	if id := rec.Run.Plan.Settings["study"]; id != "" {
		_ = ShowStudy(r, id) // a study that this version does not have leaves no pictures
	}
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

// ErrNoneValid says that a run has nothing to show.
var ErrNoneValid = errors.New("no sample is valid; the findings say why")

// NoneValid returns ErrNoneValid if no step of the run has a valid sample.
func NoneValid(rec *result.Record) error {
	valid := func(s result.Sample) bool { return s.Verdict == result.Valid && s.Step != result.SetupStep }
	if slices.ContainsFunc(rec.Samples, valid) {
		return nil
	}
	return ErrNoneValid
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
