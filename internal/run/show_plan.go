package run

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

// This file writes what a run would do, without making anything: `run --plan`.

// WritePlan writes the contenders, steps, least duration and peak load of the job, and
// for a cluster all that would appear there.
func (j *Job) WritePlan(w io.Writer) error {
	f := j.request
	names, exact := j.planned()
	p := j.Plan
	p.Rounds = cmp.Or(p.Rounds, analysis.RoundsForContenders(len(names)))
	var load time.Duration
	for _, s := range p.Steps {
		load += p.Duration.Duration() + p.Warmup.Duration()
		if w, err := workload.Lookup(s.Workload); err == nil {
			load += w.Info().Search
		}
	}
	load *= time.Duration(len(names))
	least := load * time.Duration(min(p.Rounds, leastRounds(f)))
	load *= time.Duration(p.Rounds)
	suffix := " of load, and set-up, checks and pauses on top"
	switch most := p.MaxTime.Duration(); {
	case most == 0 || load <= most:
	case least > most:
		load = least
	default:
		load, suffix = most, ", with set-up, checks and pauses"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Nothing has been made. This is what `cnibench run` would do.\n\nSuite       %s, arena %s, %s\n", p.Suite, f.Arena, roundsText(&p))
	fmt.Fprintf(&b, "Contenders  %s\n", wrapped(strings.Join(names, ", ")))
	most := ""
	if p.Until > 0 || p.MaxTime > 0 {
		most = "at most "
	}
	if !exact {
		fmt.Fprintf(&b, "            of which those run that this kernel has the pieces for: cnibench probe\n")
		most = "at most "
	}
	fmt.Fprintf(&b, "Time        %s%s%s\n", most, load.Round(time.Second), suffix)
	fmt.Fprintf(&b, "Results     %s\n\nSteps, each %s after a lead-in of %s:\n", f.Out, p.Duration.Duration(), p.Warmup.Duration())
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "  %-16s %s; peak load: %s\n", s.ID, s.Summary, j.peak(s))
	}
	for _, why := range f.uncapped {
		fmt.Fprintf(&b, "  left out: %s\n", why)
	}
	if f.Arena == Kube {
		b.WriteString(j.clusterText())
	} else {
		b.WriteString("\nOn this machine: namespaces, links and processes inside them; the kernel takes all of\nthem back when the run ends, however it ends. Nothing outside is changed.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// roundsText returns how many rounds there are, and what ends the run sooner.
func roundsText(p *result.Plan) string {
	text := unit.Plural(p.Rounds, "round")
	if p.Until > 0 {
		text += fmt.Sprintf(" at most, until the ratios are known to %g %%", 100*p.Until)
	}
	if p.MaxTime > 0 {
		text += fmt.Sprintf(", %s at most", p.MaxTime.Duration())
	}
	return text
}

// planned returns the ids of the contenders, the baseline first. exact is false if only
// the opened arena knows which of them can run.
func (j *Job) planned() (names []string, exact bool) {
	names = []string{j.request.Baseline}
	for _, entry := range j.Plan.Contenders { // of a resumed run
		if !slices.Contains(names, entry.ID) {
			names = append(names, entry.ID)
		}
	}
	if len(names) > 1 {
		return names, true
	}
	add := func(id string) {
		if !slices.Contains(names, id) {
			names = append(names, id)
		}
	}
	if j.Wanted != nil {
		for _, id := range j.Wanted {
			add(id)
		}
		return names, true
	}
	for _, c := range j.Place.Candidates(j.Catalogue.Contenders) {
		if (j.request.Arena == Kube || c.Lab.None == "") && (j.only == nil || slices.Contains(j.only, c.ID)) {
			add(c.ID)
		}
	}
	return names, j.request.Arena == Kube && !j.request.Cluster.Install
}

// peak returns the most that a step sends, as text.
func (j *Job) peak(s result.Step) string {
	limit := "all that the path carries"
	if j.request.LineRate != "" {
		limit += ", at most " + j.request.LineRate
	}
	_, share := workload.Share(s.Params[result.RateParam])
	rate, known := peakRate(&s)
	switch {
	case s.Bandwidth() > 0:
		return rate.String()
	case known && rate == 0:
		return "none"
	case known:
		return "about " + rate.String() + " of payload"
	case share && j.Plan.SharesOf == result.SharesOfSlowest:
		return "a share of what the slowest contender sustains; the search for that, at the start, takes all to their limit"
	case share:
		return "a share of what the baseline sustains; the search for that, at the start, takes it to its limit"
	}
	return limit
}

// clusterText lists what a run makes in a cluster.
func (j *Job) clusterText() string {
	k := &j.request.Cluster
	privilege := "none is privileged; the baseline's use the node's network"
	if k.Privileged {
		privilege = "those in the node's network are privileged, as --privileged allows"
	}
	namespaces := "one for each contender"
	if k.Install || len(k.Within) > 0 {
		namespaces = "one"
	}
	text := fmt.Sprintf(`
In the cluster, for the time of the run:
  Namespace    %s, %s-…, with Pod Security level "privileged", which host networking needs
  Pods         in it, on each of two nodes (%s): one in the pod network, one in the node's; %s
  Image        %s, no token mounted; they end by themselves within two minutes of a run that was killed
  Lease        one, named cnibench, renewed every 10 s: cnibench clean leaves a run alone that renews it
  Services     one %s with its EndpointSlice where a step's path is service, and as many more as --services says
  Ports        while a step runs: TCP and UDP from 5201 and 19765, TCP 7000, 8080, 8443, 2121, 2222, 21200 to 21207
  Rights       cnibench rbac prints them; cnibench clean --arena kube removes what a killed run has left
`, namespaces, k.Namespace, nodesText(j.request), privilege, k.Image, k.Service)
	if k.Install {
		text += "  Pod network  REMOVED AND REPLACED, once for each contender and round: --install is for scratch clusters\n"
	}
	return text
}

func nodesText(f *Request) string {
	if f.Given["nodes"] {
		return f.Nodes
	}
	return "the first two that are ready"
}

// wrapped breaks a list of names into lines for its column.
func wrapped(s string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && len(line)+1+len(word) > 76 {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return strings.Join(append(lines, line), "\n            ")
}
