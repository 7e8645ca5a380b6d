// Package record runs one command and records the machine around it: alone, or
// as one of a pair whose commands start and end together. It knows the format
// of a recording (sysmon) and how commands start (host), and no arena, suite
// or run; of flags it parses only statexec's short ones. Next:
// Run below, then pair.go.
package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/sysmon"
)

// Options are what one Run does.
type Options struct {
	Command []string // program and arguments
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer

	File    string // path of the recording
	Plain   bool   // write text instead of a compressed file; files *.prom, *.om and *.txt are always text
	Summary string // path of the JSON summary; "": no summary

	Instance      string            // label instance; "" is the command's name
	Labels        map[string]string // further labels of every series
	Begin         time.Time         // time that the recording gives for the first snapshot; zero: the real time
	Before, After time.Duration     // how long to record before the command starts and after its end

	Samplers []sysmon.Sampler
	Root     sysmon.Root
	Interval time.Duration // between snapshots; zero is a second

	Pair Pair
	Log  *slog.Logger // messages for people
}

// Run runs the command and records the machine until the command has ended. code is the
// command's exit code in a shell: 127 if the command was not found, 126 if it cannot be
// run, 128 + n after signal n. The recording is written in all these cases. The summary is
// nil if nothing was recorded. err is never that of the command, and does not change code:
// it is an *OptionError, or says what failed in the recording or the pairing.
func Run(ctx context.Context, o Options) (code int, s *Summary, err error) {
	if err := o.check(); err != nil {
		return 0, nil, err
	}
	out, err := create(o.File, o.Plain)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, out.close()) }()
	sheet, err := openSheet(o.Summary)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, sheet.close()) }()
	if sameFile(o.File, o.Summary) {
		return 0, nil, optionf("recording and summary are the same file %s", o.File)
	}

	signals := notify()
	defer signals.stop()
	peer, err := o.Pair.meet(ctx, signals, o.Log)
	var interrupt *interrupted
	if errors.As(err, &interrupt) {
		return signalCode(interrupt.signal), nil, err
	}
	if err != nil {
		return 0, nil, err
	}
	defer peer.close()

	rec, err := sysmon.StartWith(o.recorder())
	if err != nil {
		return 0, nil, err
	}
	c := command{argv: o.Command, stdin: o.Stdin, stdout: o.Stdout, stderr: o.Stderr, log: o.Log, mark: func() { rec.Mark() }}
	if s := signals.wait(o.Before); s != nil {
		c.err = &interrupted{s, "during the delay before the command"}
	} else {
		c.err = peer.ready(signals)
	}
	if errors.As(c.err, &interrupt) {
		c.code = signalCode(interrupt.signal)
	} else if c.err != nil {
		c.code = 1
	}
	begin := rec.Mark()
	if c.err == nil {
		c.run(ctx, signals, peer)
	}
	end := rec.Mark()
	peer.announceEnd(&c)
	c.sweep()
	if c.err == nil {
		signals.wait(o.After)
	}
	rec.End()

	s = summarize(rec, o, window{begin, end}, &c)
	if err = out.write(rec, s); err == nil {
		s.File, s.FileBytes = out.path, out.size
	} else {
		s.Faults = append(s.Faults, err.Error())
	}
	s.Recorder = ownCost()
	return c.code, s, errors.Join(err, sheet.save(s), c.peerLost)
}

// minInterval is the shortest time between snapshots, because the kernel counts CPU time
// in ticks of 10 ms.
const minInterval = 10 * time.Millisecond

// OptionError says that an option of Run is wrong.
type OptionError struct{ text string }

func (e *OptionError) Error() string { return e.text }

func optionf(format string, args ...any) error {
	return &OptionError{fmt.Sprintf(format, args...)}
}

func (o *Options) check() error {
	switch {
	case len(o.Command) == 0 || o.Command[0] == "":
		return optionf("no command to record; write it after the flags: cnibench record -d 3 -- COMMAND")
	case o.Before < 0 || o.After < 0:
		return optionf("a delay of %v is negative; 0s is the least", min(o.Before, o.After))
	case o.Interval < 0 || o.Interval > 0 && o.Interval < minInterval:
		return optionf("an interval of %v is too short; %v is the least", o.Interval, minInterval)
	case o.Plain && compressedName(o.File):
		return optionf("%s is the name of a compressed file; drop .zst or --plain", o.File)
	case o.Summary != "" && o.Summary == o.File:
		return optionf("recording and summary are the same file %s", o.File)
	}
	for _, own := range []string{"instance", "job", "role", "mode"} {
		if _, taken := o.Labels[own]; taken {
			return optionf("label %q is set by the recorder itself; choose another name (--instance sets the label instance)", own)
		}
	}
	recorder := o.recorder()
	if err := recorder.Check(); err != nil {
		return optionf("%v", err)
	}
	return o.Pair.check()
}

func (o *Options) recorder() sysmon.Options {
	return sysmon.Options{Root: o.Root, Labels: o.labels(), Samplers: o.Samplers, Begin: o.Begin, Interval: o.Interval}
}

// labels returns the labels that statexec sets (instance, job and role), and the user's.
func (o *Options) labels() map[string]string {
	labels := map[string]string{"instance": o.instance(), "job": "cnibench", "role": string(o.Pair.role())}
	for name, value := range o.Labels {
		labels[name] = value
	}
	return labels
}

// instance returns o.Instance, or else the program's name. A file name may have any
// encoding, so bytes that a label can't hold are replaced.
func (o *Options) instance() string {
	if o.Instance != "" {
		return o.Instance
	}
	return strings.ToValidUTF8(o.Command[0], "\uFFFD")
}

// explainFailure returns why the command did not run, or "".
func explainFailure(c *command) string {
	if c.err == nil {
		return ""
	}
	return c.err.Error()
}

// isRegular says whether the file is a regular one, which can be truncated.
func isRegular(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}
