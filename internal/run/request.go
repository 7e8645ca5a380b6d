// Package run carries a whole run out: the request of the command line
// (request.go) becomes a plan (plan.go) for a place (place.go), where it is
// measured (measure.go) and then reported (report.go). A run of the lab may have
// parts in processes of their own: lead.go starts them, handover.go passes them the
// request. The package parses no flags. Next: job.go.
package run

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/arena/guest"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/selftest"
	"github.com/cnibench/cnibench/internal/suite"
	"github.com/cnibench/cnibench/internal/unit"
)

// Request is what the command line of `cnibench run` asks for.
type Request struct {
	Suite, Contenders, Arena string   // Suite: an id, or a FILE with a slash or .yaml in its name
	SuiteText                string   // of that FILE, once read
	Steps                    []string // the only ones of the suite; nil: all
	Study, Scale             string   // the published study that the run repeats, and at which scale; "" for none
	Changes                  []string // of the suite: STEP.PARAMETER=VALUE
	Rounds                   int
	Duration, Warmup, Slice  time.Duration
	Until                    string        // "5%"; "" is the suite's
	MaxTime                  time.Duration // 0 is no limit; the suite's counts if the flag is not given
	Seed                     uint64
	Out, Resume              string
	Rates                    string
	RatesFrom                string       // the run directory whose rates replace shares of a capacity; "" for none
	Earlier                  *result.Plan // of RatesFrom, once read: steps, capacities, and in RatesFrom the run's name
	MaxRate                  string       // the most that a step may send, "500M"; "0" is no limit, "" the arena's
	uncapped                 []string     // steps that MaxRate leaves out, each with the reason
	Keep                     bool
	Baseline, Checks         string

	Nodes                   string // a number (lab), or names (kube)
	Underlay, MTU, LineRate string
	PodMTU                  string // lab: of the pods; "" is what encapsulation leaves of MTU
	Offload                 string
	Services                []int
	Congestion, CPUs        string
	CNIConf, CNITransport   string
	cniText                 string // of CNIConf

	Cluster Cluster
	Guest   Guest
	NIC     string // microvm: the model of the network devices that join the nodes; "" is veth pairs

	// Set by the process that leads the run, for the process that measures.
	GuestFollows bool   // a guest measures afterwards what this kernel can't run
	PartOf       string // the run directory whose remaining contenders the guest measures; "" outside a guest's part

	SelfTest *selftest.Kept // the newest self-test of this machine, kernel and version; nil: none

	// LeastRounds are those without which the run would show nothing, unless the user gave
	// its time; 0: as many as an interval takes.
	LeastRounds int

	accepted   bool // the process that leads the run has checked this request and handed it over
	isSelfTest bool
	// OnNodes says that a cluster's nodes are changed, by privileged pods on them.
	OnNodes bool

	Given map[string]bool // the flags that the user gave
	// Set sets a flag as the command line does.
	Set    func(flag, value string) error `json:"-"`
	Stdout io.Writer                      `json:"-"`
	Tool   result.Tool                    `json:"-"` // this program
}

// NewRequest returns the request of a command line without flags.
func NewRequest() Request {
	return Request{
		Suite: "quick", Contenders: "supported", Arena: Auto, Rates: suite.RatesAuto, Baseline: "host",
		Nodes: "2", Underlay: lab.UnderlayAuto, MTU: "1500", Offload: lab.OffloadHost, Congestion: lab.CongestionAuto, CNITransport: "routes",
		Slice: lab.Slice,
		Guest: Guest{Prefix: "vm-", Memory: guest.DefaultMemory},
	}
}

// Check finds wrong usage before anything is made.
func (f *Request) Check() error {
	if _, err := FindArena(f.Arena); err != nil {
		return err
	}
	if f.Checks != "" {
		if _, err := check.Named(f.Checks); err != nil {
			return err
		}
	}
	if f.Rates != "auto" && f.Rates != "given" {
		return exit.Usage("--rates %q: want auto or given", f.Rates)
	}
	if f.RatesFrom != "" && f.Rates != suite.RatesAuto {
		return exit.Usage("--rates-from and --rates %s exclude each other; leave one of them out", f.Rates)
	}
	if f.Until != "" {
		until, err := unit.ParsePercent(f.Until)
		if err != nil {
			return exit.Usage("--until: %v", err)
		}
		if until > 0 && f.Study == "" && f.Given["rounds"] && f.Rounds > 0 && f.Rounds < SelfTestRounds {
			return exit.Usage("--until %s: an interval takes %d rounds, and --rounds allows %d; give more rounds, or leave one of the two flags out", f.Until, SelfTestRounds, f.Rounds)
		}
	}
	switch {
	case f.Given["rounds"] && f.Rounds < 1:
		return exit.Usage("--rounds %d: too small; give 1 or more", f.Rounds)
	case f.Rounds > result.MaxRounds:
		return exit.Usage("--rounds %d: too large; give %d or fewer", f.Rounds, result.MaxRounds)
	case f.Given["duration"] && f.Duration < 100*time.Millisecond:
		return exit.Usage("--duration %v: too small; give 100ms or more", f.Duration)
	case f.Warmup < 0:
		return exit.Usage("--warmup %v: too small; give 0 or more", f.Warmup)
	case f.MaxTime < 0:
		return exit.Usage("--max-time %v: too small; give a positive time, or 0 for no limit", f.MaxTime)
	case f.Slice != 0 && f.Slice < leastSlice:
		return exit.Usage("--slice %v: too small; give %v or more, or 0 for none", f.Slice, leastSlice)
	}
	if f.Resume != "" {
		return f.refuseChanges(planFlags)
	}
	if f.PartOf != "" {
		return nil // plan and place are those of the other run
	}
	if f.Out == "" {
		f.Out = NewDir(time.Now())
	}
	if lab.Contained() {
		return nil
	}
	if entries, err := os.ReadDir(f.Out); err == nil && len(entries) > 0 {
		return exit.Usage("%s exists and is not empty; choose another --out, or go on with it: cnibench run --resume %s", f.Out, f.Out)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return exit.Usage("--out %s: %v", f.Out, err)
	}
	return nil
}

// NewDir names the directory of a run that begins at that time.
func NewDir(begin time.Time) string { return "cnibench-run-" + begin.Format("20060102-150405") }

// planFlags are in the plan of every run and can't change on resume.
var planFlags = []string{"study", "scale", "suite", "steps", "set", "contenders", "check", "rounds", "duration", "warmup", "slice", "seed", "out", "rates", "rates-from", maxRateFlag, "baseline", "services"}

// dir returns the run directory; "" for a guest's part, whose folder is in another run's.
func (f *Request) dir() string {
	if f.PartOf != "" {
		return ""
	}
	return cmp.Or(f.Resume, f.Out)
}

// commonSettings are the flags that every arena's plan remembers.
var commonSettings = []string{"services", "rates", maxRateFlag, "check", "study", "scale", "steps", setKey, suiteTextKey}

// Settings returns the flags that the plan remembers, with their values.
func (f *Request) Settings() map[string]string {
	s := map[string]string{}
	if row, err := FindArena(f.Arena); err == nil {
		s = row.recorded(f)
	}
	if f.Checks != "" {
		s["check"] = f.Checks
	}
	if f.Rates != suite.RatesAuto {
		s["rates"] = f.Rates
	}
	if f.MaxRate != "" {
		s[maxRateFlag] = f.MaxRate
	}
	if f.Study != "" {
		s["study"], s["scale"] = f.Study, f.Scale
	}
	if len(f.Steps) > 0 {
		s["steps"] = strings.Join(f.Steps, ",")
	}
	if len(f.Changes) > 0 {
		s[setKey] = strings.Join(f.Changes, "\n")
	}
	if f.SuiteText != "" {
		s[suiteTextKey] = f.SuiteText
	}
	if len(f.Services) > 0 {
		s["services"] = strings.Trim(strings.Join(strings.Fields(fmt.Sprint(f.Services)), ","), "[]")
	}
	return s
}

// Adopt sets the flags that a plan remembers, unless the command line gives them. Any
// other flag in the plan is an error, since another person may have written the plan.
func (f *Request) Adopt(settings map[string]string) error {
	row, err := FindArena(f.Arena)
	if err != nil {
		return err
	}
	for flag, value := range settings {
		switch {
		case flag == cniTextKey:
			f.cniText = value
			continue
		case !row.isSetting(flag):
			return fmt.Errorf("the run was made with a setting that this version does not know: %s", flag)
		case f.Given[flag]:
			continue
		case flag == setKey:
			f.Changes = strings.Split(value, "\n")
			continue
		case flag == suiteTextKey:
			f.SuiteText = value
			continue
		}
		if err := f.Set(flag, value); err != nil {
			return fmt.Errorf("setting %s of the run: %w", flag, err)
		}
	}
	_, err = f.Guest.Check()
	return err
}

// refuseChanges refuses flags that would change the plan of a resumed run.
func (f *Request) refuseChanges(fixed []string) error {
	for _, flag := range fixed {
		if f.Given[flag] && flag != "image" && flag != "cni-conf" { // trusts needs these two
			return exit.Usage("--%s: a resumed run keeps its plan; leave it out, or start a new run", flag)
		}
	}
	return nil
}
