package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/diagnose"
	"github.com/cnibench/cnibench/internal/unit"
)

// Of a trial.
const (
	trialPairs = 8 // of slices, with and without
	maxTrials  = 3

	// heldShare is the share of the allowed rate from which on bulk was held to it.
	heldShare = 0.85
)

// prove changes the settings that the case's claims name, one claim after the other.
func (s *session) prove(ctx context.Context) error {
	for i, setting := range diagnose.Settings(s.c) {
		if i >= maxTrials {
			break
		}
		s.Progress("prove: " + setting.What + " at " + setting.Endpoint)
		t, err := s.try(ctx, setting)
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		if err != nil {
			s.c.Unseen = append(s.c.Unseen, diagnose.Unseen{ID: setting.Cause, Why: fmt.Sprintf("%s at %s proved nothing: %v", setting.What, setting.Endpoint, err)})
			continue
		}
		s.c.Trials = append(s.c.Trials, t)
	}
	return nil
}

// try measures bulk of the setting's direction with and without it, in pairs of slices in
// random order. Every slice has a fresh connection, since some settings hold for new ones
// only.
func (s *session) try(ctx context.Context, setting diagnose.Setting) (t diagnose.Trial, err error) {
	list := s.all()
	at := slices.IndexFunc(list, func(e *end) bool { return e.name == setting.Endpoint })
	if at < 0 {
		return t, fmt.Errorf("%s takes no part", setting.Endpoint)
	}
	e := list[at]
	by := e.agent
	if s.Machine != nil && !e.pod {
		if by, err = s.Machine(ctx, e.Endpoint); err != nil {
			return t, err
		}
		defer func() { err = errors.Join(err, by.Close()) }()
	}
	from, to := s.pods[0], s.pods[1]
	if setting.Back {
		from, to = to, from
	}
	order := agent.Try{Journal: s.journal(e), Changes: setting.Changes, Machine: s.OwnMachine && !e.pod}
	var goodput, again slicePairs
	t = diagnose.Trial{Key: setting.Key, Node: setting.Endpoint, What: setting.What}
	take := func() (float64, float64, error) {
		f, err := s.burst(ctx, from, to.at(to.ports.Sink), s.MaxRate)
		if err == nil && f[diagnose.Failed] > 0 {
			err = errors.New("no connection was made")
		}
		return f[diagnose.Goodput], f[diagnose.Retransmits], err
	}
	for range trialPairs {
		first := s.random.IntN(2) == 0
		for _, with := range []bool{first, !first} {
			if with {
				if err := by.Try(ctx, order); err != nil {
					return t, err
				}
			}
			bits, lost, err := take()
			if with {
				err = errors.Join(err, by.Untry(context.WithoutCancel(ctx)))
			}
			if err != nil {
				return t, err
			}
			if with {
				goodput.with, again.with = append(goodput.with, bits), append(again.with, lost)
			} else {
				goodput.without, again.without = append(goodput.without, bits), append(again.without, lost)
			}
		}
	}
	t.Figures, err = trialFigures(float64(s.MaxRate), goodput, again)
	return t, err
}

// slicePairs has a figure of the slices without the change and of those with it.
type slicePairs struct{ without, with []float64 }

// trialFigures returns the figures of a trial of bulk that was held to the rate; 0 is no limit.
// An error is that goodput could not move.
func trialFigures(rate float64, goodput, again slicePairs) ([]diagnose.TrialFigure, error) {
	if rate > 0 && slices.Min(goodput.without) > heldShare*rate && slices.Min(goodput.with) > heldShare*rate {
		return nil, fmt.Errorf("bulk reached the %v that it was held to with and without it, so nothing could move; give a higher --max-rate", unit.BitRate(rate))
	}
	list := []diagnose.TrialFigure{{Metric: diagnose.Goodput, Without: goodput.without, With: goodput.with}}
	if !slices.Contains(again.without, 0) {
		list = append(list, diagnose.TrialFigure{Metric: "segments sent again", Lower: true, Without: again.without, With: again.with})
	}
	return list, nil
}
