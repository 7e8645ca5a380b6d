package card

import (
	"bytes"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
)

func sample(contender string) *analysis.Report {
	r := &analysis.Report{
		Schema: analysis.ReportSchema, Baseline: "host", Steps: []result.Step{{ID: "dts", Workload: "tcp_stream", Path: "pod"}},
		Run: analysis.RunInfo{ID: "x", Suite: "quick", Arena: "lab", Rounds: 6, Environment: result.Environment{"cpu.model": "A CPU", "cpu.count": "2", "kernel.release": "6.18.0"}},
	}
	for i, c := range []string{"host", contender} {
		r.Results = append(r.Results, analysis.Result{
			Contender: c, Kernel: "6.18.0", Step: "dts", Path: "pod", Metric: result.Goodput, Unit: "bit/s", Better: "higher",
			N: 6, Median: 2e10 / float64(i+1), Ranked: true, Groups: []string{string(rune('a' + i))},
		})
	}
	r.Results[1].VsBaseline = &analysis.Comparison{Ratio: 0.5, CI: &analysis.Interval{0.48, 0.52}}
	return r
}

func drawn(t *testing.T, r *analysis.Report) image.Image {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if got := picture.Bounds().Size(); got != image.Pt(Width, Height) {
		t.Fatalf("a picture of %v", got)
	}
	return picture
}

// inked counts the pixels of a part that are not paper.
func inked(picture image.Image, part image.Rectangle) int {
	n := 0
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			if r, g, b, _ := picture.At(x, y).RGBA(); r+g+b < 3*0xffff {
				n++
			}
		}
	}
	return n
}

func TestCard(t *testing.T) {
	for name, r := range map[string]*analysis.Report{
		"usual": sample("cilium"), "a name without end": sample(strings.Repeat("long-", 400)), "hostile": sample("\x1b[31m<script>\n"),
		"nothing measured": {Schema: analysis.ReportSchema, Baseline: "host"},
	} {
		t.Run(name, func(t *testing.T) {
			picture := drawn(t, r)
			for part, is := range map[string]image.Rectangle{"verdict": image.Rect(0, 80, Width, 200), "facts": image.Rect(0, Height-60, Width, Height)} {
				if inked(picture, is) == 0 {
					t.Errorf("no %s", part)
				}
			}
			if n := inked(picture, image.Rect(Width-20, 0, Width, Height)); n > 0 {
				t.Errorf("%d pixels run over the edge", n)
			}
		})
	}
}
