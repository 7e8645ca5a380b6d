package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/tune"
)

// Every form of the verdicts says what their number means.
func TestCaveat(t *testing.T) {
	p := 0.001
	j := tune.Judgement{Comparisons: 14, MinRounds: 10, Differences: []tune.Difference{{
		Variant: "host+rps", Step: "dts", Metric: "goodput", Unit: "bit/s", Before: 1e9, After: 2e9, Ratio: 2,
		CI: &analysis.Interval{1.5, 3}, P: &p, PHolm: &p, Verdict: tune.Helped, Reason: "a|b\nc",
	}}}
	var text, markdown bytes.Buffer
	printEffects(&text, "host", j)
	printEffectsMarkdown(&markdown, "host", j)
	for form, got := range map[string]string{"text": text.String(), "markdown": markdown.String()} {
		if !strings.Contains(got, "all 14 comparisons of the run (Holm)") || !strings.Contains(got, "at least 10 rounds") {
			t.Errorf("%s: %s", form, got)
		}
	}
	if !strings.Contains(markdown.String(), `helped: a\|b c |`) {
		t.Error(markdown.String())
	}
	out, err := json.Marshal(benchJSON("dir", "host", j))
	if err != nil || !strings.Contains(string(out), `"caveat":"Corrected for all 14`) || !strings.Contains(string(out), `"p_holm":0.001`) {
		t.Errorf("%s, %v", out, err)
	}
	if caveat(tune.Judgement{}) != "" {
		t.Error("a caveat on nothing")
	}
}
