package run

import (
	"context"
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/result"
)

// SurveyTask is what the arena is asked before the plan of a run is completed.
type SurveyTask struct {
	Contenders []string // ids
	Paths      []string // that the steps cross
	Features   bool     // the kernel, too, about all that a lab is made of
}

// Survey is what an open arena says of itself and of contenders. Nothing was brought up for it.
type Survey struct {
	Arena       string
	Environment result.Environment // that is read without a network: arena.Arena.Environment
	MaxUp       int                // for how many contenders there is room: arena.Arena.MaxUp
	Lead, Slice time.Duration      // of a turn
	Contenders  map[string]Surveyed
	Features    []lab.Feature // nil if they were not asked for
}

// Surveyed is what an arena says of a contender.
type Surveyed struct {
	Unsupported *arena.Unsupported            // nil: it can run
	Underlay    string                        // that it runs on
	Missing     map[string]*arena.Unsupported // the paths that it lacks
}

// SurveyVerb opens the arena for the measurement that follows, and asks it what a plan must know.
func SurveyVerb() Verb[SurveyTask, *Survey] {
	return Verb[SurveyTask, *Survey]{Name: "survey", Do: func(ctx context.Context, in *Inside, task SurveyTask) (*Survey, error) {
		s, err := in.survey(ctx, task)
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("interrupted %w", errNothingSealed)
		}
		return s, err
	}}
}

func (in *Inside) survey(ctx context.Context, task SurveyTask) (*Survey, error) {
	catalogue, err := LoadCatalogue(in.Venue.Own()...)
	if err != nil {
		return nil, err
	}
	list, err := catalogue.Pick(task.Contenders)
	if err != nil {
		return nil, err
	}
	if in.opened, err = in.Venue.Open(ctx); err != nil {
		return nil, err
	}
	s, err := surveyArena(ctx, in.opened.Arena, list, task.Paths)
	if err == nil && task.Features {
		s.Features, err = lab.Probe()
	}
	return s, err
}

func surveyArena(ctx context.Context, a arena.Arena, list []*contender.Contender, paths []string) (*Survey, error) {
	s := &Survey{Arena: a.Name(), Environment: a.Environment(), MaxUp: a.MaxUp(), Contenders: map[string]Surveyed{}}
	s.Lead, s.Slice = a.Slice()
	for _, c := range list {
		x := Surveyed{Underlay: a.Variant(c), Missing: map[string]*arena.Unsupported{}}
		err := a.Supports(ctx, c)
		x.Unsupported = arena.AsUnsupported(err)
		for _, path := range paths {
			if err == nil {
				lacks := a.HasPath(c, path)
				if x.Missing[path] = arena.AsUnsupported(lacks); x.Missing[path] == nil {
					err = lacks
				}
			}
		}
		if err != nil && x.Unsupported == nil {
			return nil, fmt.Errorf("contender %s: %w", c.ID, err)
		}
		s.Contenders[c.ID] = x
	}
	return s, nil
}
