package report

import (
	"strings"
	"testing"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/text"
)

func TestTextFits(t *testing.T) {
	for name, r := range samples {
		for _, width := range []int{0, 40, 60, 80, 100, 200} {
			limit := width
			if width == 0 || width > 100 {
				limit = 100
			}
			for _, color := range []bool{false, true} {
				for _, line := range strings.Split(write(t, "text", r, Options{Width: width, Color: color}), "\n") {
					if got := text.StringWidthWithoutEscSequences(line); got > limit {
						t.Errorf("%s: width %d: line of %d columns: %q", name, width, got, line)
					}
				}
			}
		}
	}
}

func TestTextHasNoControls(t *testing.T) {
	for _, format := range []string{"text", "md", "benchstat"} {
		for _, r := range write(t, format, hostile(), Options{}) {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
				t.Errorf("%s holds %U", format, r)
			}
		}
	}
}

func TestColorOnlyWhenAsked(t *testing.T) {
	if got := write(t, "text", sample(6), Options{}); strings.Contains(got, "\x1b") {
		t.Error("escape codes without Color")
	}
	if got := write(t, "text", sample(6), Options{Color: true}); !strings.Contains(got, "\x1b[31m") {
		t.Error("no red with Color, though there are worse contenders")
	}
}
