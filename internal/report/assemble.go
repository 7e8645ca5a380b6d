package report

import (
	"errors"
	"slices"

	"github.com/cnibench/cnibench/contenders"
	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/analysis/findings"
	"github.com/cnibench/cnibench/internal/analysis/otherruns"
	"github.com/cnibench/cnibench/internal/analysis/recommend"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/published"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/study"
	tracefiles "github.com/cnibench/cnibench/internal/trace"
	"github.com/cnibench/cnibench/internal/unit"
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
	r := Analyse(rec, opt)
	// The recommendation is by the default weights.
	wish := recommend.Wish{Catalogue: opt.Catalogue}
	r.Capabilities = recommend.Capabilities(rec, wish.Catalogue)
	r.Recommendation = recommend.Choose(rec, wish)
	r.Advice, _ = recommend.Advise(rec, wish) // a test reads the scenarios of this version
	Elsewhere(rec, r, nil)
	if id := rec.Run.Plan.Settings["study"]; id != "" {
		_ = ShowStudy(r, id) // a study that this version does not have leaves no pictures
	}
	return r
}

// Elsewhere says in r, the report of rec, where its ratios would lie in another run, and whether
// other runs would choose alike: by it and the user's other runs of the same kind, or if
// these are too few by it and those of the project.
func Elsewhere(rec *result.Record, r *analysis.Report, others []*analysis.Report) {
	table, err := otherruns.Project()
	if err != nil {
		return // a test reads the table of this version
	}
	otherruns.Predict(r, others, table)
	otherruns.SetUsual(r, table)
	var choices []*analysis.Recommendation
	for _, o := range others {
		choices = append(choices, o.Recommendation)
	}
	ChoiceElsewhere(rec, r.Recommendation, choices)
}

// ChoiceElsewhere says in r, the choice from rec, whether other runs would choose alike.
func ChoiceElsewhere(rec *result.Record, r *analysis.Recommendation, others []*analysis.Recommendation) {
	if table, err := otherruns.Project(); err == nil && r != nil {
		r.Elsewhere = otherruns.Choice(r, &rec.Run, others, table)
	}
}

// Analyse makes the report of a record alone. Only valid samples count for figures. Invalid
// samples, and everything else that a reader must know, become findings.
func Analyse(rec *result.Record, opt analysis.Options) *analysis.Report {
	e := analysis.Collect(rec, opt.Complete(&rec.Run.Plan))
	run := e.Run // its Plan.Rounds is the number of rounds that the run took
	return &analysis.Report{
		Schema: analysis.ReportSchema,
		Run: analysis.RunInfo{
			ID: run.ID, Arena: run.Arena, Started: run.Started,
			Rounds: run.Plan.Rounds, Suite: run.Plan.Suite, Environment: run.Environment, Unpaired: run.Plan.Unpaired,
			MeasuredShare: computeMeasuredShare(rec),
		},
		Baseline:    run.Baseline,
		Results:     e.Results,
		Findings:    findings.Of(e),
		Wanted:      e.AdviseRounds(),
		Spreads:     e.Spreads(),
		Unsupported: append([]result.Unsupported{}, run.Unsupported...),
		Contenders:  run.Contenders,
		Steps:       run.Plan.Steps,
		Curves:      analysis.Curves(e.Pools),
		Plan:        run.Plan,
		Tool:        run.Tool,
		Traces:      e.Opt.Traces,
		Measured:    e.Measured,
		Marks:       marks(rec.Samples),
		Efficiency:  analysis.Efficiencies(e),
	}
}

// computeMeasuredShare returns the share of a run's time that its windows took; 0 where it has not
// ended.
func computeMeasuredShare(rec *result.Record) float64 {
	if rec.Run.End == nil || len(rec.Samples) == 0 {
		return 0
	}
	measured, first := unit.Seconds(0), rec.Samples[0].Started
	for i := range rec.Samples {
		if s := &rec.Samples[i]; s.Step != result.SetupStep {
			measured += s.Elapsed
		}
		if at := rec.Samples[i].Started; at.Before(first) {
			first = at
		}
	}
	if took := rec.Run.End.Time.Sub(first).Seconds(); took > 0 && !first.IsZero() {
		return float64(measured) / took
	}
	return 0
}

// marks returns the samples' verdicts.
func marks(samples []result.Sample) []analysis.Mark {
	var list []analysis.Mark
	for i := range samples {
		s := &samples[i]
		if s.Step == result.SetupStep {
			continue
		}
		mark := analysis.Mark{Contender: s.Contender, Step: s.Step, Round: s.Round}
		if s.Verdict != result.Valid {
			mark.Dropped = "invalid_sample"
			if len(s.Reasons) > 0 {
				mark.Dropped = s.Reasons[0].Code
			}
		} else if len(s.DroppedClocks) > 0 {
			mark.Partly = "latency_left_out"
			if why := s.DroppedClocks[0].Reasons; len(why) > 0 {
				mark.Partly = why[0].Code
			}
		}
		list = append(list, mark)
	}
	return list
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
	r.Study = s.ToReport()
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
