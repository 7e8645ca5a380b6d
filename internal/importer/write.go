package importer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// invalidate keeps the sample out of every figure.
func (s *sample) invalidate(code, text string, args ...any) {
	s.Verdict = result.Invalid
	s.Reasons = append(s.Reasons, result.Reason{Code: code, Text: clean(fmt.Sprintf(text, args...))})
}

func (s *sample) note(code, text string, args ...any) {
	s.Notes = append(s.Notes, result.Reason{Code: code, Text: clean(fmt.Sprintf(text, args...))})
}

// write makes the run directory.
func (in *imported) write(ctx context.Context, out string, src *source) (err error) {
	store, err := result.Create(out, &in.run)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := store.WriteFaults(src.sortedFaults()); err != nil {
		return err
	}
	if err := store.WriteFile("sources.jsonl", src.writeFiles); err != nil {
		return err
	}
	list := make([]*result.Sample, len(in.samples))
	errs := make([]error, len(in.samples))
	if err := parallel(ctx, len(in.samples), func(i int) {
		s := &in.samples[i]
		list[i] = &s.Sample
		if len(s.recordings) > 0 {
			errs[i] = writeRecordings(store.Raw(&s.Sample), s.recordings)
		}
	}); err != nil {
		return err
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("import: node metrics: %w", err)
	}
	if err := store.SealAll(list); err != nil {
		return err
	}
	return store.End(in.endTime())
}

// endTime is when the last sample ended.
func (in *imported) endTime() time.Time {
	end := in.run.Started
	for i := range in.samples {
		s := &in.samples[i]
		if at := s.Started.Add(s.Elapsed.Duration()); !s.Started.IsZero() && at.After(end) {
			end = at
		}
	}
	return end
}

// writeRecordings writes what runs of our own write: see docs/format.md.
func writeRecordings(raw *result.Folder, list []*sysmon.Recording) error {
	f, err := raw.Create(sysmon.SampleFile)
	if err != nil {
		return err
	}
	return sysmon.WriteSampleFile(f, list...)
}
