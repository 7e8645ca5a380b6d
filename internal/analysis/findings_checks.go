package analysis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// This file finds what the checks of a run tell. A check's result is a key of
// the run's environment: check.CHECK.CONTENDER.CASE. Its value begins with a
// word, after which a colon and a sentence may follow: pass; fail; skip, with
// the reason; or what the check found, as a number of bytes for mtu.
//
//	check.policy.canal.ingress      pass | fail          was a forbidden connection refused, an allowed one let through
//	check.policy.canal.effect       120                  milliseconds from asking for a policy to its effect; .back: from its deletion
//	check.encryption.calico-wg.pod-tcp pass | fail       fail: pods' bytes were seen plain on a network that promises encryption
//	check.encryption.canal.pod-tcp  plain                seen plain, as its catalogue entry has it
//	check.encryption.x.pod-tcp      unseen               not seen, and nobody knows where they went or whether they were encrypted
//	check.mtu.flannel-vxlan.pod     1450                 MTU of the pods' interface, bytes
//	check.mtu.flannel-vxlan.path    1450                 largest packet that passes whole between pods of two nodes, bytes
//
// Imported runs have pod.mtu.CONTENDER, the MTU that the pods' interface
// shows, and, as runs with the check mtu do, pod.mss.CONTENDER, the payload of
// TCP's segments (bytes).

// unseen is the word of a case that could neither be proven nor refuted where
// one of the two was claimed.
const unseen = "unseen"

// checkPrefix begins the environment keys of checks.
const checkPrefix = "check."

// checked is one result of a check.
type checked struct {
	Check, Contender, Case string
	Word, Text             string
}

// checks are the run's, ordered by key.
func (e *evidence) checks() []checked {
	var list []checked
	for _, key := range sortedKeys(e.run.Environment) {
		rest, is := strings.CutPrefix(key, checkPrefix)
		check, rest, more := strings.Cut(rest, ".")
		last := strings.LastIndexByte(rest, '.')
		if !is || !more || last < 1 {
			continue
		}
		word, text, _ := strings.Cut(e.run.Environment[key], ":")
		list = append(list, checked{check, rest[:last], rest[last+1:], strings.TrimSpace(word), strings.TrimSpace(text)})
	}
	return list
}

// failed gathers the failed cases of the checks that want is true of, one
// entry for each check and contender.
func (e *evidence) failed(want func(c checked) bool, word func(c checked, cases string) string) []Finding {
	type at struct{ check, contender string }
	var order []at
	cases := map[at][]string{}
	first := map[at]checked{}
	for _, c := range e.checks() {
		if c.Word != "fail" && c.Word != unseen || !want(c) {
			continue
		}
		a := at{c.Check, c.Contender}
		if cases[a] == nil {
			order, first[a] = append(order, a), c
		}
		text := strings.ReplaceAll(c.Case, "-", " ")
		if c.Text != "" {
			text += " (" + c.Text + ")"
		}
		cases[a] = append(cases[a], text)
	}
	var list []Finding
	for _, a := range order {
		list = append(list, Finding{Contender: a.contender, Text: word(first[a], andList(fewOf(cases[a])))})
	}
	return list
}

// fewOf are the first of a long list, and how many more there are.
func fewOf(cases []string) []string {
	const most = 5
	if len(cases) <= most {
		return cases
	}
	return append(slices.Clone(cases[:most-1]), fmt.Sprintf("%d more", len(cases)-most+1))
}

// policyNotEnforced goes by what the catalogue promises: a promise that was
// broken is an error, and none that was kept just so is only worth knowing.
func policyNotEnforced(e *evidence) []Finding {
	list := e.failed(func(c checked) bool { return c.Check == "policy" },
		func(_ checked, cases string) string { return "NetworkPolicy was not enforced: " + cases })
	for i := range list {
		f := &list[i]
		switch promised, known := e.promises(f.Contender, "policy", "egress-policy", "l7"); {
		case !known:
			f.Severity = Warn
		case !promised:
			f.Severity, f.Next = Info, "Take another contender where NetworkPolicy is needed."
			f.Text += "; it promises none"
		}
	}
	return list
}

// policyEffect tells how long policies take, of contenders that heed them.
func policyEffect(e *evidence) []Finding {
	ms := map[string]map[string]int{} // by contender and case
	var contenders []string
	for _, c := range e.checks() {
		n, err := strconv.Atoi(c.Word)
		if c.Check != "policy" || err != nil {
			continue
		}
		if ms[c.Contender] == nil {
			ms[c.Contender] = map[string]int{}
			contenders = append(contenders, c.Contender)
		}
		ms[c.Contender][c.Case] = n
	}
	slices.Sort(contenders)
	var list []Finding
	for _, c := range contenders {
		effect, timed := ms[c]["effect"]
		if !timed {
			continue
		}
		f := Finding{Contender: c, Text: fmt.Sprintf("a NetworkPolicy cut a connection off %d ms after it was asked for", effect)}
		if back, timed := ms[c]["back"]; timed {
			f.Text += fmt.Sprintf(", and let it pass %d ms after its deletion was", back)
		}
		list = append(list, f)
	}
	return list
}

// promises says whether the catalogue has any of the needs for a contender,
// and whether it knows the contender.
func (e *evidence) promises(contender string, needs ...string) (promised, known bool) {
	for _, c := range e.opt.Catalogue {
		if c.Contender == contender && slices.Contains(needs, c.Name) {
			known = true
			promised = promised || c.Value != "no"
		}
	}
	return promised, known
}

func plainOnTheWire(e *evidence) []Finding {
	return e.failed(func(c checked) bool { return c.Check == "encryption" && c.Word != unseen },
		func(_ checked, cases string) string {
			return "the pods' traffic should be encrypted between nodes and was seen plain: " + cases
		})
}

func checkFailed(e *evidence) []Finding {
	return e.failed(func(c checked) bool { return c.Check != "policy" && c.Check != "encryption" || c.Word == unseen },
		func(c checked, cases string) string { return fmt.Sprintf("the check %s failed: %s", c.Check, cases) })
}

// sizes are what is known of a contender's packets, bytes; 0 is unknown.
type sizes struct {
	pod  int // MTU of the pods' interface
	path int // largest packet that passes whole
	mss  int // payload of TCP's segments
}

// effective is the largest packet that pods really send.
func (s sizes) effective() int {
	if s.mss > 0 {
		return s.mss + tcpHeaders
	}
	return s.pod
}

// packets are the sizes of contenders, in the order of the keys.
func (e *evidence) packets() (contenders []string, found map[string]*sizes) {
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
	pod := func(s *sizes, bytes int) { s.pod = bytes }
	for _, c := range e.checks() {
		switch {
		case c.Check == "mtu" && c.Case == "pod":
			note(c.Contender, c.Word, pod)
		case c.Check == "mtu" && c.Case == "path":
			note(c.Contender, c.Word, func(s *sizes, bytes int) { s.path = bytes })
		}
	}
	for _, key := range sortedKeys(e.run.Environment) {
		if contender, is := strings.CutPrefix(key, "pod.mtu."); is {
			note(contender, e.run.Environment[key], pod)
		} else if contender, is := strings.CutPrefix(key, "pod.mss."); is {
			note(contender, e.run.Environment[key], func(s *sizes, bytes int) { s.mss = bytes })
		}
	}
	return contenders, found
}

// mostWaste is the share of the underlay's packet that a pod's MTU may leave
// unused beside the encapsulation.
const mostWaste = 0.02

func mtuWastes(e *evidence) []Finding {
	contenders, found := e.packets()
	under := e.underlayMTU(found)
	var list []Finding
	for _, c := range contenders {
		sent, overhead := found[c].effective(), e.overhead(c)
		if left := under - sent - overhead; sent > 0 && c != e.run.Baseline && float64(left) > mostWaste*float64(under) {
			list = append(list, Finding{Contender: c, Text: fmt.Sprintf(
				"pods send packets of %d bytes at most on an underlay of %d: with %d bytes of encapsulation it could be %d", sent, under, overhead, under-overhead)})
		}
	}
	return list
}

func mtuTooLarge(e *evidence) []Finding {
	contenders, found := e.packets()
	under := e.underlayMTU(found)
	if e.run.Arena == imported && found[e.run.Baseline] == nil {
		under = 0 // what the run names is the largest of the pods' own
	}
	var list []Finding
	for _, c := range contenders {
		sent, path, overhead := found[c].effective(), found[c].path, e.overhead(c)
		switch {
		case c == e.run.Baseline:
		case path > 0 && sent > path:
			list = append(list, Finding{Contender: c, Text: fmt.Sprintf(
				"pods send packets of up to %d bytes, but those of more than %d don't cross to another node whole", sent, path)})
		case path == 0 && under > 0 && sent > under-overhead:
			list = append(list, Finding{Severity: Warn, Contender: c, Text: fmt.Sprintf(
				"pods send packets of up to %d bytes, and the underlay's %d less %d of encapsulation, as the catalogue has it, leave %d: larger ones should not cross to another node whole; nobody tried",
				sent, under, overhead, under-overhead)})
		}
	}
	return list
}

func linkMTU(e *evidence) []Finding {
	contenders, found := e.packets()
	var list []Finding
	for _, c := range contenders {
		if s := found[c]; s.mss > 0 && s.pod > s.effective() {
			list = append(list, Finding{Contender: c, Text: fmt.Sprintf(
				"the pods' interface shows an MTU of %d, and TCP's segments carry %d bytes: the path's MTU is %d", s.pod, s.mss, s.effective())})
		}
	}
	return list
}

// underlayMTU is what the baseline sends where that is known, else the run's
// setting; 0 is unknown.
func (e *evidence) underlayMTU(found map[string]*sizes) int {
	if own := found[e.run.Baseline]; own != nil && own.effective() > 0 {
		return own.effective()
	}
	mtu, _ := strconv.Atoi(e.run.Plan.Settings["mtu"])
	return mtu
}
