package tune

import (
	"context"
	"errors"
	"fmt"
)

// SetMachine applies the request to the machine and writes the old values to the journal.
// RevertTo with the answer's mark reverts it. After an error SetMachine reverts it itself.
func SetMachine(ctx context.Context, m *Machine, j *Journal, req Request) (a Answer, err error) {
	a = Answer{Left: map[string]string{}, Mark: j.Mark()}
	defer func() {
		if err != nil {
			err = errors.Join(err, RevertTo(ctx, m, j, a.Mark))
		}
	}()
	_, items, err := req.plan(ctx, m)
	if err != nil {
		return a, err
	}
	made, failed, err := Apply(ctx, m, j, items)
	if err != nil {
		return a, err
	}
	if len(failed) > 0 {
		return a, errors.Join(failures(failed)...)
	}
	for _, item := range items {
		if left := item.WhyNothing(); left != "" {
			a.Left[item.Setting.Name] = left
		}
	}
	a.Made = len(made)
	return a, nil
}

// RevertTo reverts what was applied since the mark, even if ctx has ended. Its error names
// every value that was not reverted, with the cause.
func RevertTo(ctx context.Context, m *Machine, j *Journal, mark int) error {
	return revertError(Revert(context.WithoutCancel(ctx), m, j, mark, false))
}

// revertError is what a revert did as an error.
func revertError(r Reverted, err error) error {
	left := failures(r.Failed)
	for _, k := range r.Kept {
		left = append(left, fmt.Errorf("setting %s: %s was set to %s, and somebody has set it to %s since: that value is kept", k.Setting, k.Place, k.Read, k.Now))
	}
	for _, e := range r.Gone {
		left = append(left, fmt.Errorf("setting %s: %s is not there now: should it come back, it may still have %s", e.Setting, e.Place, e.To))
	}
	if len(left) > 0 {
		left = append(left, errors.New("some settings of the machine were not reverted; see `cnibench tune status`"))
	}
	return errors.Join(append(left, err)...)
}

func failures(failed []Failure) []error {
	var errs []error
	for _, f := range failed {
		errs = append(errs, f)
	}
	return errs
}
