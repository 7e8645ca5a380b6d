package analysis

import (
	"strconv"
	"strings"
)

// checkPrefix begins the environment keys of checks.
const checkPrefix = "check."

// checked is one result of a check.
type CheckResult struct {
	Check, Contender, Case string
	Word, Text             string
}

// Checks are the run's, ordered by key.
func (e *Evidence) Checks() []CheckResult {
	var list []CheckResult
	for _, key := range SortedKeys(e.Run.Environment) {
		rest, is := strings.CutPrefix(key, checkPrefix)
		check, rest, more := strings.Cut(rest, ".")
		last := strings.LastIndexByte(rest, '.')
		if !is || !more || last < 1 {
			continue
		}
		word, text, _ := strings.Cut(e.Run.Environment[key], ":")
		list = append(list, CheckResult{check, rest[:last], rest[last+1:], strings.TrimSpace(word), strings.TrimSpace(text)})
	}
	return list
}

// sizes are what is known of a contender's packets, bytes; 0 is unknown.
type sizes struct {
	Pod  int // MTU of the pods' interface
	Path int // largest packet that passes whole
	Mss  int // payload of TCP's segments
}

// Effective is the largest packet that pods really send.
func (s sizes) Effective() int {
	if s.Mss > 0 {
		return s.Mss + TcpHeaders
	}
	return s.Pod
}

// Packets are the sizes of contenders, in the order of the keys.
func (e *Evidence) Packets() (contenders []string, found map[string]*sizes) {
	found = map[string]*sizes{}
	note := func(contender, value string, set func(s *sizes, bytes int)) {
		bytes, err := strconv.Atoi(value)
		if err != nil || bytes <= 0 {
			return
		}
		if found[contender] == nil {
			found[contender] = &sizes{}
			contenders = append(contenders, contender)
		}
		set(found[contender], bytes)
	}
	pod := func(s *sizes, bytes int) { s.Pod = bytes }
	for _, c := range e.Checks() {
		switch {
		case c.Check == "mtu" && c.Case == "pod":
			note(c.Contender, c.Word, pod)
		case c.Check == "mtu" && c.Case == "path":
			note(c.Contender, c.Word, func(s *sizes, bytes int) { s.Path = bytes })
		}
	}
	for _, key := range SortedKeys(e.Run.Environment) {
		if contender, is := strings.CutPrefix(key, "pod.mtu."); is {
			note(contender, e.Run.Environment[key], pod)
		} else if contender, is := strings.CutPrefix(key, "pod.mss."); is {
			note(contender, e.Run.Environment[key], func(s *sizes, bytes int) { s.Mss = bytes })
		}
	}
	return contenders, found
}

// UnderlayMTU is what the baseline sends where that is known, else the run's
// setting; 0 is unknown.
func (e *Evidence) UnderlayMTU(found map[string]*sizes) int {
	if own := found[e.Run.Baseline]; own != nil && own.Effective() > 0 {
		return own.Effective()
	}
	mtu, _ := strconv.Atoi(e.Run.Plan.Settings["mtu"])
	return mtu
}

// Headers inside an underlay frame, bytes, by protocol; IPv4.
const (
	TcpHeaders = 20 + 32 // with timestamps
)

// MostWaste is the share of the underlay's packet that a pod's MTU may leave
// unused beside the encapsulation.
const MostWaste = 0.02
