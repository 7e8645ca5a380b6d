package analysis

import (
	"fmt"
	"strconv"
	"strings"
)

// This file finds what the checks of a run tell. A check's result is a key of
// the run's environment: check.CHECK.CONTENDER.CASE. Its value begins with a
// word, after which a colon and a sentence may follow: pass; fail; skip, with
// the reason; or what the check found, as a number of bytes for mtu.
//
//	check.policy.canal.ingress      pass | fail          was a forbidden connection refused, an allowed one let through
//	check.encryption.calico-wg.wire pass | fail          fail: pods' bytes were seen plain on a network that promises encryption
//	check.mtu.flannel-vxlan.pod     1450                 MTU of the pods' interface, bytes
//	check.mtu.flannel-vxlan.path    1450                 largest packet that passes whole between pods of two nodes, bytes

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
func (e *evidence) failed(want func(check string) bool, word func(c checked, cases string) string) []Finding {
	type at struct{ check, contender string }
	var order []at
	cases := map[at][]string{}
	first := map[at]checked{}
	for _, c := range e.checks() {
		if c.Word != "fail" || !want(c.Check) {
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
		list = append(list, Finding{Contender: a.contender, Text: word(first[a], andList(cases[a]))})
	}
	return list
}

func policyNotEnforced(e *evidence) []Finding {
	return e.failed(func(check string) bool { return check == "policy" },
		func(_ checked, cases string) string { return "NetworkPolicy was not enforced: " + cases })
}

func plainOnTheWire(e *evidence) []Finding {
	return e.failed(func(check string) bool { return check == "encryption" },
		func(_ checked, cases string) string {
			return "the pods' traffic should be encrypted between nodes and was seen plain: " + cases
		})
}

func checkFailed(e *evidence) []Finding {
	return e.failed(func(check string) bool { return check != "policy" && check != "encryption" },
		func(c checked, cases string) string { return fmt.Sprintf("the check %s failed: %s", c.Check, cases) })
}

// mtus are what the mtu check found in bytes, by contender and case.
func (e *evidence) mtus() (contenders []string, found map[string]map[string]int) {
	found = map[string]map[string]int{}
	for _, c := range e.checks() {
		bytes, err := strconv.Atoi(c.Word)
		if c.Check != "mtu" || err != nil || bytes <= 0 {
			continue
		}
		if found[c.Contender] == nil {
			found[c.Contender] = map[string]int{}
			contenders = append(contenders, c.Contender)
		}
		found[c.Contender][c.Case] = bytes
	}
	return contenders, found
}

// mostWaste is the share of the underlay's packet that a pod's MTU may leave
// unused beside the encapsulation.
const mostWaste = 0.02

func mtuWastes(e *evidence) []Finding {
	contenders, found := e.mtus()
	var list []Finding
	for _, c := range contenders {
		pod, under, overhead := found[c]["pod"], e.underlayMTU(found), e.overhead(c)
		if left := under - pod - overhead; pod > 0 && c != e.run.Baseline && float64(left) > mostWaste*float64(under) {
			list = append(list, Finding{Contender: c, Text: fmt.Sprintf(
				"pods have an MTU of %d on an underlay of %d: with %d bytes of encapsulation it could be %d", pod, under, overhead, under-overhead)})
		}
	}
	return list
}

func mtuTooLarge(e *evidence) []Finding {
	contenders, found := e.mtus()
	var list []Finding
	for _, c := range contenders {
		pod, path := found[c]["pod"], found[c]["path"]
		if under := e.underlayMTU(found); path == 0 && pod > 0 && under > 0 {
			path = under - e.overhead(c)
		}
		if pod > path && path > 0 && c != e.run.Baseline {
			list = append(list, Finding{Contender: c, Text: fmt.Sprintf(
				"pods have an MTU of %d, but packets of more than %d bytes don't cross to another node whole", pod, path)})
		}
	}
	return list
}

// underlayMTU is the baseline's own MTU where the check found it, else the
// run's setting; 0 is unknown.
func (e *evidence) underlayMTU(found map[string]map[string]int) int {
	if own := found[e.run.Baseline]["pod"]; own > 0 {
		return own
	}
	mtu, _ := strconv.Atoi(e.run.Plan.Settings["mtu"])
	return mtu
}
