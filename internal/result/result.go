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
	// End is set when the run has ended. Runs of older versions have no End.
	End *End `json:"end,omitempty"`
}

// Tool is the program that made the run.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
}

// String returns the version, followed by the commit if the commit is known.
func (t Tool) String() string {
	if t.Commit == "" {
		return t.Version
	}
	return t.Version + " (" + t.Commit + ")"
}

// SharesOfSlowest is a value of Plan.SharesOf: rates are shares of the capacity of the
// slowest contender, so that no contender is asked for more than it sustains.
const SharesOfSlowest = "slowest"

// MaxRounds is the largest number of rounds of a run. Readers refuse more: no machine takes
// them, and a reader that walks them never ends.
const MaxRounds = 10_000

// Plan is what the run does. The same plan with the same seed gives the same order.
type Plan struct {
	Suite      string       `json:"suite"`
	Rounds     int          `json:"rounds"`
	Seed       uint64       `json:"seed"`
	Duration   unit.Seconds `json:"duration"`
	Warmup     unit.Seconds `json:"warmup"`
	Contenders []Entry      `json:"contenders"`
	Steps      []Step       `json:"steps"`
	// Settings are those of the arena: nodes, underlay MTU, line rate, CPUs.
	Settings map[string]string `json:"settings,omitempty"`
	// Gaps are steps that a contender can't take, because it lacks their path;
	// Run.Unsupported says why.
	Gaps []Gap `json:"gaps,omitempty"`
	// SharesOf says of which capacity rates are shares: the baseline's (""), or the slowest
	// contender's (SharesOfSlowest).
	SharesOf string `json:"shares_of,omitempty"`
	// Capacity is the highest sustained rate (1/s) by workload and parameters (Step.Load), for
	// steps whose rate was given as a share.
	Capacity map[string]float64 `json:"capacity,omitempty"`
	// RatesFrom is the id of the earlier run that Capacity and the rates were taken from.
	RatesFrom string `json:"rates_from,omitempty"`
	// Unpaired says that the samples of a round were not taken at about the same time.
	// Then a disturbance does not hit all contenders of a round, and does not cancel
	// out of their ratios, so rounds are not compared in pairs. Imported runs are unpaired.
	Unpaired bool `json:"unpaired,omitempty"`
	// The run ends when the half-widths of the ratios' intervals have come down to Until
	// (a share), or after MaxTime; Rounds is then the largest number of rounds. If both
	// are 0, the run takes all rounds.
	Until   float64      `json:"until,omitempty"`
	MaxTime unit.Seconds `json:"max_time,omitempty"`
	// Together is how many contenders have their loads open at the same time, while all
	// contenders of a round are up. If that is not all of them, they take turns in blocks, each
	// with the baseline. If it is 0 or 1, each contender is brought up after the previous
	// one was taken down.
	Together int `json:"together,omitempty"`
	// In steps whose load can pause, the contenders of a round are measured in turns.
	// Slice is how long a turn is measured; Lead is how long the contender is loaded
	// before that without being measured. If Slice is 0, each contender takes the
	// whole step at once.
	Slice unit.Seconds `json:"slice,omitempty"`
	Lead  unit.Seconds `json:"lead,omitempty"`
}

// InRound returns a round's name for people. It contains the number of all rounds if that
// number is known, that is without Until and MaxTime.
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

// Takes says whether the contender takes the step in this plan.
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

// FlowsParam is the parameter of a step that is how many bulk connections send beside its
// requests; 0 is an idle path.
const FlowsParam = "flows"

// BandwidthParam is the parameter that limits how fast a step sends, in bit/s of payload.
// "0" is no limit. Runs of older versions lack the parameter and have no limit. In the
// workloads of iperf3 (*_stream) the limit is per stream, in others for all streams together.
const BandwidthParam = "bandwidth"

// Bandwidth returns the limit that BandwidthParam sets for all streams together; 0 is no
// limit.
func (s *Step) Bandwidth() unit.BitRate {
	text, _ := s.Params[BandwidthParam].(string)
	rate, _ := unit.ParseBitRate(text)
	return rate * unit.BitRate(s.senders())
}

// WithBandwidth returns the step with a BandwidthParam that limits all streams together to
// most, bit/s of payload.
func (s Step) WithBandwidth(maximum unit.BitRate) Step {
	s.Params = maps.Clone(s.Params)
	s.Params[BandwidthParam] = strconv.FormatFloat(math.Floor(float64(maximum)/float64(s.senders())), 'f', 0, 64)
	return s
}

// senders returns how many streams BandwidthParam limits separately.
func (s *Step) senders() int {
	if strings.HasSuffix(s.Workload, "_stream") {
		if streams, err := strconv.Atoi(fmt.Sprint(s.Params["streams"])); err == nil {
			return streams
		}
	}
	return 1
}

// Load returns the key of the step in Plan.Capacity: workload, path and all parameters but
// the rate. It fails if a parameter cannot be written as JSON.
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
	ID          string     `json:"id"`
	Product     string     `json:"product"`
	Version     string     `json:"version,omitempty"`
	Summary     string     `json:"summary"`
	Datapath    string     `json:"datapath,omitempty"` // attach and transport, in the arena's words
	Overhead    unit.Bytes `json:"overhead_bytes"`     // of the encapsulation, per packet
	Own         []string   `json:"own_programs,omitempty"`
	Reproduced  []string   `json:"reproduced,omitempty"`
	FormDiffers string     `json:"apart,omitempty"`  // how the lab form differs from its product, and why
	Held        string     `json:"held,omitempty"`   // version of the product that the lab form was compared with; "no": never; "": not known, or no lab form
	SHA256      string     `json:"sha256,omitempty"` // of its file in the catalogue, hexadecimal; "" has none
}

// Unsupported is a contender of the catalogue that could not run, or with Step set a
// contender that could not take that step, and the reason.
type Unsupported struct {
	Contender string `json:"contender"`
	Step      string `json:"step,omitempty"`
	Reason    string `json:"reason"`
	Remedy    string `json:"remedy"`
	// OtherKernel says that the contender would run under another kernel.
	OtherKernel bool `json:"other_kernel,omitempty"`
}

// Environment is the fingerprint: what explains a result. Keys are stable and
// grouped by dots, e.g. "kernel.release", "cpu.model", "sysctl.net.core.rmem_max".
type Environment map[string]string

// EmulatedKey is the environment key that is "true" if the kernel ran on an emulated CPU.
const EmulatedKey = "arena.emulated"

// Emulated says whether the kernel ran on an emulated CPU.
func (e Environment) Emulated() bool { return e[EmulatedKey] == "true" }

// NameKey ends the keys that hold a cluster's own name of a node, as kube.node1.name.
const NameKey = ".name"

// nodeKey returns the key of a node's name.
func nodeKey(number int) string { return fmt.Sprintf("kube.node%d%s", number, NameKey) }

// Nodes returns the names of a cluster's nodes by those that reports use, in their order:
// "worker-a (node1)"; nil if they were not recorded.
func (e Environment) Nodes() (list []string) {
	for i := 1; e[nodeKey(i)] != ""; i++ {
		list = append(list, fmt.Sprintf("%s (node%d)", e[nodeKey(i)], i))
	}
	return list
}

// Anonymous returns the environment without the names of nodes.
func (e Environment) Anonymous() Environment {
	other := maps.Clone(e)
	for i := 1; other[nodeKey(i)] != ""; i++ {
		delete(other, nodeKey(i))
	}
	return other
}

// Sample is one line of samples.jsonl: the values that one step gave for one
// contender in one round, with its verdict. It is never changed once sealed.
type Sample struct {
	Schema        string             `json:"schema"`
	Contender     string             `json:"contender"`
	Kernel        string             `json:"kernel"`
	Underlay      string             `json:"underlay"`
	Round         int                `json:"round"` // from 1
	Order         int                `json:"order"` // position in the run, from 1
	Step          string             `json:"step"`
	Workload      string             `json:"workload"`
	Path          string             `json:"path"`
	Started       time.Time          `json:"started"`
	Elapsed       unit.Seconds       `json:"elapsed"` // of the measured window
	Verdict       Verdict            `json:"verdict"`
	Reasons       []Reason           `json:"reasons,omitempty"` // why it is invalid
	Notes         []Reason           `json:"notes,omitempty"`
	Metrics       map[string]float64 `json:"metrics"`
	DroppedClocks []DroppedClock     `json:"spoiled,omitempty"` // clocks whose figures were taken out of Metrics
	Slices        *Slices            `json:"slices,omitempty"`  // nil: the sample was measured at once
	Raw           string             `json:"raw,omitempty"`     // folder, relative to the run directory
	Tool          string             `json:"tool,omitempty"`    // Tool.String of the program that took the sample, if it differs from Run.Tool
	// HistogramFiles are file names in the raw folder by clock: HdrHistogram V2, nanoseconds.
	HistogramFiles map[string]string `json:"histograms,omitempty"`

	// Histograms are the files' contents, filled in by Load.
	Histograms map[string]*hdrhistogram.Histogram `json:"-"`
}

// Slices are the turns in which a sample was measured. In one cycle every contender has a
// slice of the step; if there are many contenders, the baseline has several.
type Slices struct {
	// Cycles are the numbers of the slices' cycles, from 1, in the order in which
	// they were taken. Slices of contenders with the same number were taken within
	// seconds of each other.
	Cycles []int `json:"cycles"`
	// Metrics are values by slice, as many as Cycles has.
	Metrics map[string][]float64 `json:"metrics"`
	// Disturbed are the numbers of the cycles that something else on the machine
	// disturbed. Their slices are left out for all contenders.
	Disturbed []int `json:"disturbed,omitempty"`
}

// CountCycles returns the number of all cycles, disturbed ones included.
func (s *Slices) CountCycles() int {
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
