package findings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/text"
)

// This file has the rules about the checks of a run. A check's result is a key of the
// run's environment: check.CHECK.CONTENDER.CASE. Its value is a word, after which a colon
// and a sentence may follow. The word is pass, fail, skip (the reason follows), or what the
// check found, such as a number of bytes for mtu.
//
//	check.policy.canal.ingress      pass | fail          pass: a forbidden connection was refused, an allowed one succeeded
//	check.policy.canal.effect       120                  milliseconds from asking for a policy to its effect; .back: from its deletion
//	check.encryption.calico-wg.pod-tcp pass | fail       fail: the pods' bytes were seen plain, although the network promises encryption or encrypts others
//	check.encryption.canal.pod-tcp  plain                seen plain, and the catalogue promises no encryption
//	check.encryption.x.pod-tcp      unseen               the pods' bytes were not seen, so nobody knows whether they were encrypted
//	check.mtu.flannel-vxlan.pod     1450                 MTU of the pods' interface, bytes
//	check.mtu.flannel-vxlan.path    1450                 largest packet that passes unfragmented between pods of two nodes, bytes
//
// Imported runs have pod.mtu.CONTENDER, the MTU of the pods' interface. They, and runs with
// the check mtu, also have pod.mss.CONTENDER, the payload of TCP's segments (bytes).

// unseen is the word of a case whose claim could be neither proven nor refuted.
const unseen = "unseen"

// findFailedCases returns a finding for each check and contender with failed cases, if want is true
// for the check. word makes its text.
func findFailedCases(e *evidence, want func(c analysis.CheckResult) bool, word func(c analysis.CheckResult, cases string) string) []analysis.Finding {
	type at struct{ check, contender string }
	var order []at
	cases := map[at][]string{}
	first := map[at]analysis.CheckResult{}
	for _, c := range e.Checks() {
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
	var list []analysis.Finding
	for _, a := range order {
		list = append(list, analysis.Finding{Contender: a.contender, Text: word(first[a], analysis.AndList(text.Shorten(cases[a], 5)))})
	}
	return list
}

// policyNotEnforced finds policies that were not enforced. The severity depends on the
// catalogue: error if it promises policies, info if it promises none, else a warning.
func policyNotEnforced(e *evidence) []analysis.Finding {
	list := findFailedCases(e, func(c analysis.CheckResult) bool { return c.Check == "policy" },
		func(_ analysis.CheckResult, cases string) string { return "NetworkPolicy was not enforced: " + cases })
	for i := range list {
		f := &list[i]
		switch promised, known := promises(e, f.Contender, "policy", "egress-policy", "l7"); {
		case !known:
			f.Severity = analysis.Warn
		case !promised:
			f.Severity, f.Next = analysis.Info, "Take another contender where NetworkPolicy is needed."
			f.Text += "; it promises none"
		}
	}
	return list
}

// policyEffect says how long policies take until they have an effect, for each contender
// that enforces them.
func policyEffect(e *evidence) []analysis.Finding {
	ms := map[string]map[string]int{} // by contender and case
	var contenders []string
	for _, c := range e.Checks() {
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
	var list []analysis.Finding
	for _, c := range contenders {
		effect, timed := ms[c]["effect"]
		if !timed {
			continue
		}
		f := analysis.Finding{Contender: c, Text: fmt.Sprintf("a NetworkPolicy cut a connection off %d ms after it was asked for", effect)}
		if deletion, timed := ms[c]["back"]; timed {
			f.Text += fmt.Sprintf(", and let it pass %d ms after its deletion was", deletion)
		}
		list = append(list, f)
	}
	return list
}

// promises says whether the catalogue promises any of the needs for a contender. known is
// false if the catalogue says nothing about them.
func promises(e *evidence, contender string, needs ...string) (promised, known bool) {
	for _, c := range e.Opt.Catalogue {
		if c.Contender == contender && slices.Contains(needs, c.Name) {
			known = true
			promised = promised || c.Value != "no"
		}
	}
	return promised, known
}

func plainOnTheWire(e *evidence) []analysis.Finding {
	return findFailedCases(e, func(c analysis.CheckResult) bool { return c.Check == "encryption" && c.Word != unseen },
		func(_ analysis.CheckResult, cases string) string {
			return "the pods' traffic was seen plain between nodes, though encryption is promised or others are encrypted: " + cases
		})
}

func checkFailed(e *evidence) []analysis.Finding {
	return findFailedCases(e, func(c analysis.CheckResult) bool {
		return c.Check != "policy" && c.Check != "encryption" || c.Word == unseen
	},
		func(c analysis.CheckResult, cases string) string {
			return fmt.Sprintf("the check %s failed: %s", c.Check, cases)
		})
}

func mtuWastes(e *evidence) []analysis.Finding {
	contenders, found := e.Packets()
	under := e.UnderlayMTU(found)
	if e.Run.Arena == imported && found[e.Run.Baseline] == nil {
		under = 0 // the run's setting is only the largest MTU of its pods
	}
	var list []analysis.Finding
	for _, c := range contenders {
		sent, overhead := found[c].Effective(), e.Overhead(c)
		if e.Run.Arena == imported && !e.KnowsOverhead(c) {
			if sent > 0 && c != e.Run.Baseline && float64(under-sent) > 2*analysis.MaxWaste*float64(under) {
				list = append(list, analysis.Finding{Contender: c, Text: fmt.Sprintf(
					"pods send packets of %d bytes at most on an underlay of %d: it could be %d less its encapsulation, which is not known", sent, under, under)})
			}
			continue
		}
		if left := under - sent - overhead; sent > 0 && c != e.Run.Baseline && float64(left) > analysis.MaxWaste*float64(under) {
			list = append(list, analysis.Finding{Severity: analysis.Warn, Contender: c, Text: fmt.Sprintf(
				"pods send packets of %d bytes at most on an underlay of %d: with %d bytes of encapsulation it could be %d", sent, under, overhead, under-overhead)})
		}
	}
	return list
}

func mtuTooLarge(e *evidence) []analysis.Finding {
	contenders, found := e.Packets()
	under := e.UnderlayMTU(found)
	if e.Run.Arena == imported && found[e.Run.Baseline] == nil {
		under = 0 // the run's setting is only the largest MTU of its pods
	}
	var list []analysis.Finding
	for _, c := range contenders {
		sent, path, overhead := found[c].Effective(), found[c].Path, e.Overhead(c)
		switch {
		case c == e.Run.Baseline:
		case path > 0 && sent > path:
			list = append(list, analysis.Finding{Contender: c, Text: fmt.Sprintf(
				"pods send packets of up to %d bytes, and packets of more than %d do not cross to another node whole", sent, path)})
		case path == 0 && under > 0 && sent > under-overhead:
			list = append(list, analysis.Finding{Severity: analysis.Warn, Contender: c, Text: fmt.Sprintf(
				"pods send packets of up to %d bytes; the underlay's %d less %d of encapsulation leave %d (computed, not tried)",
				sent, under, overhead, under-overhead)})
		}
	}
	return list
}

func linkMTU(e *evidence) []analysis.Finding {
	contenders, found := e.Packets()
	var list []analysis.Finding
	for _, c := range contenders {
		if s := found[c]; s.MSS > 0 && s.Pod > s.Effective() {
			list = append(list, analysis.Finding{Severity: analysis.Info, Contender: c, Text: fmt.Sprintf(
				"the pods' interface shows an MTU of %d, and TCP's segments carry %d bytes: the path's MTU is %d", s.Pod, s.MSS, s.Effective())})
		}
	}
	return list
}
