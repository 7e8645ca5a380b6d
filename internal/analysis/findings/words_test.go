package findings

import (
	"slices"
	"testing"
)

// Every rule has its words in findings.yaml, every kind there has its rule, and no code
// stands for two kinds.
func TestRulesHaveWords(t *testing.T) {
	named := map[string]bool{}
	for _, r := range Reasons() {
		k, _ := KindOf(r.Code)
		named[k.Code] = true // by the rule of invalid samples
	}
	for _, r := range rules {
		named[r.code] = true
		if k, known := KindOf(r.code); !known || k.Code != r.code {
			t.Errorf("the rule %s has no words", r.code)
		}
	}
	seen := map[string]string{}
	for _, k := range Kinds() {
		if !named[k.Code] {
			t.Errorf("no rule finds %s", k.Code)
		}
		if !slices.Contains(severities, k.Severity) || k.Title == "" || k.Help == "" || k.Next == "" {
			t.Errorf("%+v lacks something", k)
		}
		for _, code := range append(slices.Clone(k.Was), k.Code) {
			if other := seen[code]; other != "" {
				t.Errorf("%s stands for %s and for %s", code, other, k.Code)
			}
			seen[code] = k.Code
		}
	}
	for _, r := range Reasons() {
		if seen[r.Code] == "" {
			t.Errorf("the reason %s has no kind", r.Code)
		}
	}
}

// Every code of earlier versions is still known.
func TestOldCodes(t *testing.T) {
	for old, now := range map[string]string{
		"corrupt_samples": "unreadable_file", "scattered_rounds": "unsteady_rounds", "steal_present": "machine_busy",
		"mtu_too_large": "mtu_wrong", "coarse_resolution": "too_few_rounds", "udp_loss": "udp_loss",
	} {
		if k, known := KindOf(old); !known || k.Code != now {
			t.Errorf("%s is %s, want %s", old, k.Code, now)
		}
	}
	for _, gone := range []string{"warmup_not_over", "level_step", "bursty_series"} {
		if k, known := KindOf(gone); known && k.Code == gone {
			t.Errorf("%s is a kind", gone)
		}
	}
}
