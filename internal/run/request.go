// Package run carries a whole run out: the request of the command line (request.go,
// flags.go) becomes a plan (plan.go), which is carried out in a venue (venue.go), where it
// is measured (measure.go), and then reported (job.go). A worker (worker.go) carries this and
// any other task out beyond the borders of processes. The package parses no command line. Next: job.go.
package run

import (
	"errors"
	"os"
	"time"

	"github.com/cnibench/cnibench/internal/arena/guest"
	"github.com/cnibench/cnibench/internal/arena/lab"
	"github.com/cnibench/cnibench/internal/check"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/result"
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
	RatesFrom                string   // the run directory whose rates replace shares of a capacity; "" for none
	MaxRate                  string   // the most that a step may send, "500M"; "0" is no limit, "" the arena's
	uncapped                 []string // steps that MaxRate leaves out, each with the reason
	Keep                     bool
	Baseline, Checks         string

	Nodes                   string // a number (lab), or names (kube)
	EveryNode               bool   // kube: checks ask pairs of nodes in turn, until all were asked
	Most                    int    // mesh in a cluster: the highest number of nodes; 0: all
	Probes                  string // mesh --watch in a cluster: label selector of the pods to probe from; "": it makes pods
	Underlay, MTU, LineRate string
	PodMTU                  string // lab: of the pods; "" is what encapsulation leaves of MTU
	Offload                 string
	Services                []int
	Congestion, CPUs        string
	CNIConf, CNITransport   string
	CNIText                 string // of CNIConf, once read

	Cluster Cluster
	Guest   Guest
	NIC     string // microvm: the model of the network devices that join the nodes; "" is veth pairs

	// AllCPUs says that what a lab measures may use all CPUs unless the user gave --cpus.
	AllCPUs bool
	// ForSelfTest says that the run is the self-test's.
	ForSelfTest bool
	// OnNodes says that a cluster's nodes are changed, by privileged pods on them.
	OnNodes bool

	Given map[string]bool // the flags that the user gave
	Tool  result.Tool     // this program
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

// check finds wrong usage before anything is made.
func (f *Request) check() error {
	if _, err := KindOf(f.Arena, nil); err != nil {
		return err
	}
	if f.Checks != "" {
		if _, err := check.ParseNames(f.Checks); err != nil {
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
	case f.Slice != 0 && f.Slice < minSlice:
		return exit.Usage("--slice %v: too small; give %v or more, or 0 for none", f.Slice, minSlice)
	}
	if f.Resume != "" {
		return f.refuseChanges()
	}
	if f.Out == "" {
		f.Out = NewDir(time.Now())
	}
	if fresh, err := result.IsFresh(f.Out); err == nil && !fresh {
		return exit.Usage("%s exists and is not empty; choose another --out, or go on with it: cnibench run --resume %s", f.Out, f.Out)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return exit.Usage("--out %s: %v", f.Out, err)
	}
	return nil
}

// NewDir names the directory of a run that begins at that time.
func NewDir(begin time.Time) string { return "cnibench-run-" + begin.Format("20060102-150405") }
