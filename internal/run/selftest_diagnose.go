package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/corpus"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/diagnose"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/selftest"
	"github.com/cnibench/cnibench/internal/strictyaml"
)

// The short form of diagnose's matrix in a self-test: one cycle of short slices finds what is
// as coarse as these plants.
const (
	selfTestCycles = 1
	selfTestSlice  = 60 * time.Millisecond
)

// selfTestPlants are the faults of the corpus that a self-test plants.
var selfTestPlants = []string{"offload-off-tunnel", "rate-limited-uplink"}

// plantPrograms are what those are planted with.
var plantPrograms = []string{"sh", "ethtool", "tc"}

// diagnosisTrials plants faults in labs of their own, and none in a further one, and holds what
// diagnose says against that.
func diagnosisTrials(ctx context.Context, conditions selftest.Conditions) (list []selftest.Trial, err error) {
	planted := []Planted{}
	for _, name := range selfTestPlants {
		file := "lab/" + name + ".yaml"
		text, err := corpus.Lab.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var p Planted
		if err := strictyaml.Decode(file, bytes.NewReader(text), &p); err != nil {
			return nil, err
		}
		planted = append(planted, p)
	}
	planted = append(planted, Planted{Contender: planted[0].Contender, How: "nothing", Expected: ExpectedClaim{ID: diagnose.Usual}})
	leftOut := conditions.NoDiagnosis
	for _, program := range plantPrograms {
		if missing := host.CheckProgram(program); missing != nil && leftOut == "" {
			leftOut = missing.Error()
		}
	}
	for _, p := range planted {
		t := p.trial()
		if t.LeftOut = leftOut; leftOut == "" {
			t.Found, t.Passed, t.LeftOut, err = diagnosePlant(ctx, p)
		}
		if err != nil {
			return list, err
		}
		list = append(list, t)
	}
	return list, nil
}

// diagnosePlant brings a lab up, plants the fault and says what was found, or why that cannot
// be done here. A lab that fails is not passed.
func diagnosePlant(ctx context.Context, p Planted) (found string, passed bool, leftOut string, err error) {
	f := NewRequest()
	f.Arena = Lab
	d := Diagnosis{Contender: p.Contender, Cycles: selfTestCycles, Slice: selfTestSlice, Plant: &p}
	err = Diagnose(ctx, &f, d, func(_ *diagnose.Case, v *diagnose.Verdict) error {
		found, passed = p.judge(v)
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return "", false, "", errors.New("interrupted")
	case found != "" || err == nil:
		return found, passed, "", nil
	}
	if u := arena.AsUnsupported(err); u != nil || exit.Code(err) == exit.Unsupported {
		return "", false, err.Error(), nil
	}
	return err.Error(), false, "", nil
}

// trial is the plant as a trial that has not been made.
func (p *Planted) trial() selftest.Trial {
	t := selftest.Trial{Name: "diagnosis: " + p.Cause, Planted: p.How}
	if p.Expected.ID == diagnose.Usual {
		t.Name, t.Wanted = "diagnosis: sound", "no cause that is proven, and none of those planted"
		return t
	}
	t.Wanted = strings.TrimSpace(fmt.Sprintf("%s first, at %s %s %s", p.Expected.ID, p.Expected.Node, p.Expected.Device, p.Expected.Direction))
	return t
}

// judge says what was found and whether that is what was planted. A busy machine may be named
// where nothing was planted: it is busy.
func (p *Planted) judge(v *diagnose.Verdict) (found string, passed bool) {
	if len(v.Causes) == 0 {
		return "no cause: " + v.Summary, p.Expected.ID == diagnose.Usual
	}
	first := v.Causes[0]
	found = strings.Join(strings.Fields(fmt.Sprintf("%s %s at %s %s %s", first.ID, first.State, first.Node, first.Device, first.Direction)), " ")
	if e := first.Effect; e != nil {
		found += fmt.Sprintf(": %s %.2f× when changed", e.Metric, e.Ratio)
	}
	if p.Expected.ID != diagnose.Usual {
		_, there := p.Expected.Is(first)
		return found, there
	}
	return found, !slices.ContainsFunc(v.Causes, func(x diagnose.Claim) bool {
		return x.State == diagnose.Proven || slices.ContainsFunc(selfTestPlants, func(name string) bool { return strings.HasPrefix(name, x.ID) })
	})
}
