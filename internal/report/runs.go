package report

import (
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/result"
)

// Run is the report of the run in a directory.
type Run struct {
	Dir    string
	Report *analysis.Report
}

// Title names the run among others.
func (r *Run) Title() string { return Title(r.Dir, r.Report.Run.Arena, r.Report.Run.Environment) }

// Title names the run in dir among others.
func Title(dir, arena string, env result.Environment) string {
	title := fmt.Sprintf("%s: arena %s, kernel %s", dir, arena, env["kernel.release"])
	if env.Emulated() {
		title += " on an emulated CPU"
	}
	return title
}

// WriteRuns writes the reports of the runs of a folder one under the other. They have
// different kernels, so that no figure of one is compared with a figure of another: every
// run has tables of its own, as Write writes them. JSON is one object a run, CSV has the
// header once, and the page shows every run's page in a frame.
func WriteRuns(w io.Writer, format string, runs []Run, opt Options) error {
	if len(runs) == 1 {
		return Write(w, format, runs[0].Report, opt)
	}
	if format == string(HTML) {
		return writeFrames(w, runs, opt)
	}
	for i := range runs {
		title := ""
		switch Format(format) {
		case Text:
			title = strings.Repeat("\n", min(i, 1)) + runs[i].Title() + "\n\n"
		case Markdown:
			title = strings.Repeat("\n", min(i, 1)) + "# " + md(runs[i].Title()) + "\n\n"
		}
		if _, err := io.WriteString(w, title); err != nil {
			return err
		}
		var err error
		if format == string(CSV) && i > 0 {
			err = writeCSVRows(w, runs[i].Report)
		} else {
			err = Write(w, format, runs[i].Report, opt)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var framesTemplate = template.Must(template.New("frames").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>cnibench: {{len .}} runs</title>
<style>body{margin:0;font-family:sans-serif}h1{font-size:1rem;margin:.6rem 1rem}iframe{border:0;border-bottom:2px solid #888;width:100%;height:95vh}</style></head>
<body>{{range .}}<h1>{{.Title}}</h1>
<iframe title="{{.Title}}" srcdoc="{{.Page}}"></iframe>
{{end}}</body></html>
`))

// writeFrames writes a page with every run's page in a frame of its own.
func writeFrames(w io.Writer, runs []Run, opt Options) error {
	type frame struct{ Title, Page string }
	var frames []frame
	for i := range runs {
		var page strings.Builder
		if err := Write(&page, string(HTML), runs[i].Report, opt); err != nil {
			return err
		}
		frames = append(frames, frame{runs[i].Title(), page.String()})
	}
	return framesTemplate.Execute(w, frames)
}
