package bench

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// writeRecordings writes all recordings of the step as one file.
func writeRecordings(raw *result.Folder, w *watch, recordings map[string]*sysmon.Recording) error {
	f, err := raw.Create(sysmon.SampleFile)
	if err != nil {
		return err
	}
	var list []*sysmon.Recording
	for _, name := range w.names {
		list = append(list, recordings[name])
	}
	return sysmon.WriteSampleFile(f, list...)
}

// watch records every endpoint of a deployment and notes the marks of the window.
type watch struct {
	deployment   *deployment
	names        []string
	mu           sync.Mutex
	begins, ends map[string]time.Time
	errs         []error
}

// watch starts the recorders of those agents. Agents that have ended since the step
// before are started anew.
func (s *deployment) watch(ctx context.Context, names []string) (*watch, error) {
	w := &watch{deployment: s, names: names, begins: map[string]time.Time{}, ends: map[string]time.Time{}}
	record := func(_ string, a *agent.Client) error { return a.Record(context.Background()) }
	err := w.all(record)
	if errors.Is(err, agent.ErrEnded) {
		_, _ = w.stop() // the recorders that did start
		if err = s.restartEnded(ctx); err == nil {
			err = w.all(record)
		}
	}
	return w, err
}

// all asks every agent at once.
func (w *watch) all(ask func(name string, a *agent.Client) error) error {
	errs := make([]error, len(w.names))
	var wg sync.WaitGroup
	for i, name := range w.names {
		wg.Go(func() { errs[i] = ask(name, w.deployment.agents[name]) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (w *watch) begin() { w.mark(w.begins) }
func (w *watch) end()   { w.mark(w.ends) }

func (w *watch) mark(at map[string]time.Time) {
	err := w.all(func(name string, a *agent.Client) error {
		t, err := a.Mark(context.Background())
		if err != nil {
			return err
		}
		w.mu.Lock()
		at[name] = t
		w.mu.Unlock()
		return nil
	})
	w.errs = append(w.errs, err)
}

// stop ends the recorders and returns their recordings, by endpoint.
func (w *watch) stop() (map[string]*sysmon.Recording, error) {
	recordings := map[string]*sysmon.Recording{}
	err := w.all(func(name string, a *agent.Client) error {
		rec, err := a.Stop(context.Background())
		if err != nil {
			return err
		}
		w.mu.Lock()
		recordings[name] = rec
		w.mu.Unlock()
		return nil
	})
	return recordings, errors.Join(append(w.errs, err)...)
}
