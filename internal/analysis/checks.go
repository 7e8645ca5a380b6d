package analysis

import (
	"strconv"
	"strings"
)

// checkPrefix begins the environment keys of checks.
const checkPrefix = "check."

// CheckResult is one result of a check.
type CheckResult struct {
	Check, Contender, Case string
	Word, Text             string
}

// Checks returns the results of the run's checks, ordered by key.
func (e *Evidence) Checks() []CheckResult {
	var list []CheckResult
	for _, key := range SortedKeys(e.Run.Environment) {
		rest, isCheck := strings.CutPrefix(key, checkPrefix)
		check, rest, hasCase := strings.Cut(rest, ".")
		last := strings.LastIndexByte(rest, '.')
		if !isCheck || !hasCase || last < 1 {
			continue
		}
		word, text, _ := strings.Cut(e.Run.Environment[key], ":")
		list = append(list, CheckResult{check, rest[:last], rest[last+1:], strings.TrimSpace(word), strings.TrimSpace(text)})
	}
	return list
}

// sizes are the packet sizes of a contender, bytes; 0 is unknown.
type sizes struct {
	Pod  int // MTU of the pods' interface
	Path int // largest packet that passes whole
	MSS  int // payload of TCP's segments
}

// Effective returns the size of the largest packet that pods send.
func (s sizes) Effective() int {
	if s.MSS > 0 {
		return s.MSS + TCPHeaders
	}
	return s.Pod
}

// Packets returns the packet sizes of contenders, and the contenders in the order of the keys.
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
		if contender, found := strings.CutPrefix(key, "pod.mtu."); found {
			note(contender, e.Run.Environment[key], pod)
		} else if contender, found := strings.CutPrefix(key, "pod.mss."); found {
			note(contender, e.Run.Environment[key], func(s *sizes, bytes int) { s.MSS = bytes })
		}
	}
	return contenders, found
}

// UnderlayMTU returns the size of the baseline's largest packets if it is known, else the
// run's setting "mtu"; 0 is unknown.
func (e *Evidence) UnderlayMTU(found map[string]*sizes) int {
	if own := found[e.Run.Baseline]; own != nil && own.Effective() > 0 {
		return own.Effective()
	}
	mtu, _ := strconv.Atoi(e.Run.Plan.Settings["mtu"])
	return mtu
}

// Headers inside an underlay frame, bytes, by protocol; IPv4.
const (
	TCPHeaders = 20 + 32 // with timestamps
)

// MaxWaste is the share of the underlay's MTU that may stay unused: neither the pods'
// packets nor the encapsulation need it.
const MaxWaste = 0.02
