// Package result is the model of a run: its plan, its environment, its
// samples, the metric catalogue, and the run directory on disk with its
// versions. It computes no statistics. Next: store.go writes, load.go reads,
// metric.go is the catalogue; docs/format.md describes the files.
package result

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/unit"
)

// RunSchema and SampleSchema name the newest versions of the files.
const (
	RunSchema    = "cnibench/run/1"
	SampleSchema = "cnibench/sample/1"
)

// Run is run.json: everything that is known before the first sample.
type Run struct {
	Schema      string          `json:"schema"`
	ID          string          `json:"id"`
	Tool        Tool            `json:"tool"`
	Started     time.Time       `json:"started"`
	Arena       string          `json:"arena"`
	Baseline    string          `json:"baseline"`
	Plan        Plan            `json:"plan"`
	Contenders  []ContenderInfo `json:"contenders"`
	Unsupported []Unsupported   `json:"unsupported"`
	Environment Environment     `json:"environment"`
	// End is there once the run has ended; older runs have none.
	End *End `json:"end,omitempty"`
}

// Tool is the program that made the run.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
}

// String is the version, with the commit where it is known.
func (t Tool) String() string {
	if t.Commit == "" {
		return t.Version
	}
	return t.Version + " (" + t.Commit + ")"
}

// SharesOfSlowest is the value of Plan.SharesOf with which no contender that stands beside
// the baseline is asked for more than a share of what it sustains.
const SharesOfSlowest = "slowest"

// Plan is what the run does; with its seed it gives the same order again.
type Plan struct {
	Suite      string       `json:"suite"`
	Rounds     int          `json:"rounds"`
	Seed       uint64       `json:"seed"`
	Duration   unit.Seconds `json:"duration"`
	Warmup     unit.Seconds `json:"warmup"`
	Contenders []Entry      `json:"contenders"`
	Steps      []Step       `json:"steps"`
	// Settings are the arena's own: nodes, underlay MTU, line rate, CPUs.
	Settings map[string]string `json:"settings,omitempty"`
	// Gaps are steps that a contender can't take, because it lacks their path;
	// Run.Unsupported says why.
	Gaps []Gap `json:"gaps,omitempty"`
	// SharesOf says of whose highest rate shares are taken: the baseline's, or of the
	// lowest that a contender has (SharesOfSlowest).
	SharesOf string `json:"shares_of,omitempty"`
	// Capacity is that rate (1/s) by workload and parameters, where a step's rate was
	// given as a share.
	Capacity map[string]float64 `json:"capacity,omitempty"`
	// RatesFrom is the id of the earlier run that Capacity and the rates were taken from.
	RatesFrom string `json:"rates_from,omitempty"`
	// Unpaired says that samples of one round were not taken beside each other,
	// so that rounds of the same number are no pairs: nothing that the contenders
	// share in a round cancels in their ratio. Imported runs are so.
	Unpaired bool `json:"unpaired,omitempty"`
	// Until is the half-width of ratios' intervals, as a share, at which the run ends,
	// and MaxTime how long it may take; Rounds are then the most that it takes. 0: it
	// takes all rounds.
	Until   float64      `json:"until,omitempty"`
	MaxTime unit.Seconds `json:"max_time,omitempty"`
	// Together is how many contenders stand at the same time; 0 or 1: each comes
	// up when the one before is down.
	Together int `json:"together,omitempty"`
	// Slice is how long a contender is measured at a stretch in steps whose load can
	// pause, and Lead how long it is loaded before that, which does not count: the
	// contenders of a round take slices in turn. 0: each takes a whole step.
	Slice unit.Seconds `json:"slice,omitempty"`
	Lead  unit.Seconds `json:"lead,omitempty"`
}

// InRound names a round for people: with the number of all of them, unless the run
// ends by itself.
func (p *Plan) InRound(round int) string {
	if p.Until > 0 || p.MaxTime > 0 {
		return fmt.Sprintf("round %d", round)
	}
	return fmt.Sprintf("round %d/%d", round, p.Rounds)
}

// Entry is a contender of the plan on one underlay.
type Entry struct {
	ID       string `json:"id"`
	Underlay string `json:"underlay"`
}

// Gap is a step that a contender of the plan does not take.
type Gap struct {
	Contender string `json:"contender"`
	Step      string `json:"step"`
}

// Takes says whether the plan has the contender take the step.
func (p *Plan) Takes(contender, step string) bool {
	return !slices.Contains(p.Gaps, Gap{Contender: contender, Step: step})
}

// Step is a workload with its parameters and path.
type Step struct {
	ID       string         `json:"id"`
	Summary  string         `json:"summary,omitempty"`
	Workload string         `json:"workload"`
	Path     string         `json:"path"`
	Params   map[string]any `json:"params,omitempty"`
	// Services is how many other Services there are beside the step's own, on
	// the path "service".
	Services int `json:"services,omitempty"`
}

// RateParam is the parameter of a step that is its rate, 1/s.
const RateParam = "rate"

// BandwidthParam is the parameter of a step that caps what it sends: bit/s of payload; "0",
// or none in runs of before there was one, caps nothing. That of iperf3's workloads, *_stream,
// is of each stream, that of others of all streams.
const BandwidthParam = "bandwidth"

// Bandwidth returns what the step sends at most over all streams, as BandwidthParam caps it;
// 0: nothing caps it.
func (s *Step) Bandwidth() unit.BitRate {
	text, _ := s.Params[BandwidthParam].(string)
	rate, _ := unit.ParseBitRate(text)
	return rate * unit.BitRate(s.senders())
}

// WithBandwidth returns the step with BandwidthParam so that all its streams send at most
// that, bit/s of payload.
func (s Step) WithBandwidth(most unit.BitRate) Step {
	s.Params = maps.Clone(s.Params)
	s.Params[BandwidthParam] = strconv.FormatFloat(math.Floor(float64(most)/float64(s.senders())), 'f', 0, 64)
	return s
}

// senders are how many streams BandwidthParam caps, each for itself.
func (s *Step) senders() int {
	if strings.HasSuffix(s.Workload, "_stream") {
		if streams, err := strconv.Atoi(fmt.Sprint(s.Params["streams"])); err == nil {
			return streams
		}
	}
	return 1
}

// Load names what the step does without its rate, as Plan.Capacity has it: workload,
// path and the other parameters. It fails if a parameter cannot be written as JSON.
func (s *Step) Load() (string, error) {
	params := map[string]any{}
	for k, v := range s.Params {
		if k != RateParam {
			params[k] = v
		}
	}
	b, err := json.Marshal(params)
	return s.Workload + " " + s.Path + " " + string(b), err
}

// ContenderInfo is what a reader of the run must know of a contender.
type ContenderInfo struct {
	ID         string     `json:"id"`
	Product    string     `json:"product"`
	Version    string     `json:"version,omitempty"`
	Summary    string     `json:"summary"`
	Datapath   string     `json:"datapath,omitempty"` // attach × transport in words, as the arena has them
	Overhead   unit.Bytes `json:"overhead_bytes"`     // encapsulation, bytes a packet
	Own        []string   `json:"own_programs,omitempty"`
	Reproduced []string   `json:"reproduced,omitempty"`
	SHA256     string     `json:"sha256,omitempty"` // of its file in the catalogue, hexadecimal; "" has none
}

// Unsupported is a contender of the catalogue that could not run, and why; with
// a step, one that could not take just that step.
type Unsupported struct {
	Contender string `json:"contender"`
	Step      string `json:"step,omitempty"`
	Reason    string `json:"reason"`
	Remedy    string `json:"remedy"`
	// OtherKernel says that another kernel is all it takes.
	OtherKernel bool `json:"other_kernel,omitempty"`
}

// Environment is the fingerprint: what explains a result. Keys are stable and
// grouped by dots, e.g. "kernel.release", "cpu.model", "sysctl.net.core.rmem_max".
type Environment map[string]string

// Sample is one line of samples.jsonl: the values that one step gave for one
// contender in one round, with its verdict. It is never changed once sealed.
type Sample struct {
	Schema    string             `json:"schema"`
	Contender string             `json:"contender"`
	Kernel    string             `json:"kernel"`
	Underlay  string             `json:"underlay"`
	Round     int                `json:"round"` // from 1
	Order     int                `json:"order"` // position in the run, from 1
	Step      string             `json:"step"`
	Workload  string             `json:"workload"`
	Path      string             `json:"path"`
	Started   time.Time          `json:"started"`
	Elapsed   unit.Seconds       `json:"elapsed"` // of the measured window
	Verdict   Verdict            `json:"verdict"`
	Reasons   []Reason           `json:"reasons,omitempty"` // why it is invalid
	Notes     []Reason           `json:"notes,omitempty"`
	Metrics   map[string]float64 `json:"metrics"`
	Spoiled   []Spoiled          `json:"spoiled,omitempty"` // clocks whose figures are in no metric
	Slices    *Slices            `json:"slices,omitempty"`  // the stretches that it was measured in; nil: one
	Raw       string             `json:"raw,omitempty"`     // folder, relative to the run directory
	Tool      string             `json:"tool,omitempty"`    // Tool.String of the program that took it, where it is not the run's
	// Files of Histograms lie in the raw folder, HdrHistogram V2, nanoseconds.
	HistogramFiles map[string]string `json:"histograms,omitempty"`

	// Histograms are the files' contents, filled in by Load.
	Histograms map[string]*hdrhistogram.Histogram `json:"-"`
}

// Slices are the stretches in which a sample was measured, in turns with those of
// the other contenders. In one cycle every contender has a slice of the step, the
// baseline more than one where contenders are many.
type Slices struct {
	// Cycles are the numbers of the slices' cycles, from 1, in the order in which
	// they were taken. Slices of contenders with the same number were taken within
	// seconds of each other.
	Cycles []int `json:"cycles"`
	// Metrics are values by slice, as many as Cycles has.
	Metrics map[string][]float64 `json:"metrics"`
	// Disturbed are the cycles that something else on the machine disturbed: their
	// slices are left out, for all contenders.
	Disturbed []int `json:"disturbed,omitempty"`
}

// Tried is how many cycles there were, the disturbed ones included.
func (s *Slices) Tried() int {
	return len(s.Disturbed) + len(slices.Compact(slices.Clone(s.Cycles)))
}

// SetupStep is the step under which the time to bring a contender up is sealed.
const SetupStep = "setup"

// Verdict says whether a sample may be ranked.
type Verdict string

// The verdicts.
const (
	Valid   Verdict = "valid"
	Invalid Verdict = "invalid"
)

// Reason is a code for programs and a sentence for people.
type Reason struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Key identifies a sample within a run.
type Key struct {
	Contender, Underlay, Step string
	Round                     int
}

// Key is the sample's identity within its run.
func (s *Sample) Key() Key {
	return Key{Contender: s.Contender, Underlay: s.Underlay, Step: s.Step, Round: s.Round}
}
