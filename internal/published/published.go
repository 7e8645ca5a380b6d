// Package published holds figures of published studies, as embedded data with their source, how
// they were read, and their caveats. It computes ratios and nothing else, and opens no file.
// Next: beside.go puts a study's ratios beside a report's; data/ has the figures.
package published

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/strictyaml"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/unit"
)

//go:embed data/*.yaml
var data embed.FS

// Study is a publication with figures.
type Study struct {
	ID       string `yaml:"id"` // name of its file without .yaml
	Title    string `yaml:"title"`
	Author   string `yaml:"author"`
	Date     string `yaml:"date"` // as text
	URL      string `yaml:"url"`
	File     string `yaml:"file"` // file in the repository at URL
	Hardware string `yaml:"hardware"`
	Link     string `yaml:"link"` // the highest goodput of its link, e.g. 9.9 Gbit/s; "" if unknown
	Software string `yaml:"software"`
	Method   string `yaml:"method"`
	// Conditions holds other possible causes of a difference, by the keys of ConditionKeys.
	Conditions map[string]string `yaml:"conditions"`
	Caveats    []string          `yaml:"caveats"`
	Tables     []Table           `yaml:"tables"`
}

// Table holds figures that were measured together, so that they may be compared with each
// other.
type Table struct {
	Title    string   `yaml:"title"`
	Hardware string   `yaml:"hardware"` // if it differs from the study's
	Read     string   `yaml:"read"`     // how the figures were read: one of Readings
	Baseline string   `yaml:"baseline"` // the row of the host network; "" if there is none
	Load     float64  `yaml:"load"`     // the request rate divided by the highest that the study's host network sustained; 0 if there is no rate
	Note     string   `yaml:"note"`
	Columns  []Column `yaml:"columns"`
	Rows     []Row    `yaml:"rows"`
}

// Column is one quantity. If cnibench measures the same quantity, Class is the class of its
// steps and Metric its name in the catalogue.
type Column struct {
	Name   string `yaml:"name"`
	Unit   string `yaml:"unit"` // the real unit of the figures, even if the source names another; "ratio" is the ratio to the baseline
	Class  string `yaml:"class"`
	Metric string `yaml:"metric"`
	Over   string `yaml:"over"` // the column that the baseline's figure is taken from; "" means this column
}

// Row is one configuration: its name in the study, and the id of the contender that stands for
// it.
type Row struct {
	Name      string     `yaml:"name"`
	Contender string     `yaml:"contender"` // "" if there is none
	Values    []*float64 `yaml:"values"`    // one for each column; nil if the study has no figure
	// Runs holds the figures of each of the study's runs, if the study published them; then
	// Values must be absent and becomes their medians. Each run has one figure for each column,
	// nil if it has none.
	Runs  [][]*float64 `yaml:"runs"`
	Lossy []string     `yaml:"lossy"` // columns with so much loss that the figure has no ratio
}

// Readings holds the ways in which figures were read, with their meaning.
func Readings() map[string]string {
	return map[string]string{
		"table":       "printed as numbers",
		"text":        "from the running text",
		"chart label": "the label of a bar or point of a chart",
		"pixels":      "measured on the picture of a chart",
		"computed":    "computed from published raw data",
	}
}

// Studies returns all studies, ordered by id. An error means that this program was built with a
// wrong file.
func Studies() ([]Study, error) {
	files, err := fs.Sub(data, "data")
	if err != nil {
		return nil, err
	}
	return strictyaml.Load(files, "", func(file string, r io.Reader) (Study, error) {
		s, err := Read(file, r)
		if err != nil {
			return Study{}, err
		}
		return *s, nil
	}, func(s Study) string { return s.ID })
}

// Select returns the studies with the ids, or all studies if there are no ids. It returns a
// *text.UnknownError for an unknown id.
func Select(all []Study, ids []string) ([]Study, error) {
	if len(ids) == 0 {
		return all, nil
	}
	var chosen []Study
	for _, id := range ids {
		s, err := text.Find("study", id, all, func(s Study) string { return s.ID })
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, s)
	}
	return chosen, nil
}

// Read decodes and checks a study. file is the name of its file, ID plus ".yaml".
func Read(file string, r io.Reader) (*Study, error) {
	s := &Study{}
	if err := strictyaml.Decode(file, r, s); err != nil {
		return nil, err
	}
	for i := range s.Tables {
		for j := range s.Tables[i].Rows {
			s.Tables[i].Rows[j].medians()
		}
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if s.ID+".yaml" != file {
		return nil, fmt.Errorf("%s: the study's id is %s", file, s.ID)
	}
	return s, nil
}

func (s *Study) check() error {
	for name, text := range map[string]string{"title": s.Title, "author": s.Author, "date": s.Date, "url": s.URL, "hardware": s.Hardware, "software": s.Software, "method": s.Method} {
		if text == "" {
			return fmt.Errorf("no %s; a figure is worth what is known of its source", name)
		}
	}
	if _, err := unit.ParseBitRate(s.Link); s.Link != "" && err != nil {
		return fmt.Errorf("link: %w", err)
	}
	for key := range s.Conditions {
		if !slices.Contains(ConditionKeys(), key) {
			return fmt.Errorf("conditions: %w", text.Unknown("condition", key, ConditionKeys()))
		}
	}
	if len(s.Tables) == 0 {
		return fmt.Errorf("no tables")
	}
	for i := range s.Tables {
		if err := s.Tables[i].check(); err != nil {
			return fmt.Errorf("table %q: %w", s.Tables[i].Title, err)
		}
	}
	return nil
}

func (t *Table) check() error {
	if _, known := Readings()[t.Read]; !known {
		return fmt.Errorf("read %q: want one of table, text, chart label, pixels, computed", t.Read)
	}
	if t.Baseline != "" && t.row(t.Baseline) == nil {
		return fmt.Errorf("no row %q for the baseline", t.Baseline)
	}
	if !(t.Load >= 0 && t.Load < 2) {
		return fmt.Errorf("load %v: want a share of the highest rate, such as 0.5", t.Load)
	}
	for _, c := range t.Columns {
		if _, known := result.LookupMetric(c.Metric); c.Unit == "" || (c.Class == "") != (c.Metric == "") || c.Metric != "" && !known {
			return fmt.Errorf("column %q: wants a unit, and a class with a metric of the catalogue or neither", c.Name)
		}
	}
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	for _, c := range t.Columns {
		if c.Over != "" && !slices.Contains(names, c.Over) {
			return fmt.Errorf("column %q: over: %w", c.Name, text.Unknown("column", c.Over, names))
		}
	}
	for _, r := range t.Rows {
		for _, name := range r.Lossy {
			if !slices.Contains(names, name) {
				return fmt.Errorf("row %q: lossy: %w", r.Name, text.Unknown("column", name, names))
			}
		}
		if len(r.Values) != len(t.Columns) || len(r.Runs) > 0 && len(r.Runs) != len(t.Columns) {
			return fmt.Errorf("row %q: %d values for %d columns", r.Name, len(r.Values), len(t.Columns))
		}
		for _, v := range slices.Concat(r.Runs...) {
			if v != nil && *v < 0 {
				return fmt.Errorf("row %q: a run of %v", r.Name, *v)
			}
		}
		for i, v := range r.Values {
			if v != nil && *v < 0 {
				return fmt.Errorf("row %q, column %q: %v", r.Name, t.Columns[i].Name, *v)
			}
		}
	}
	return nil
}

// medians sets Values to the medians of Runs, if there are runs.
func (r *Row) medians() {
	for i := range r.Runs {
		there := slices.DeleteFunc(r.runs(i), math.IsNaN)
		var value *float64
		if len(there) > 0 {
			value = new(stat.Median(there))
		}
		r.Values = append(r.Values, value)
	}
}

func (t *Table) row(name string) *Row {
	for i := range t.Rows {
		if t.Rows[i].Name == name {
			return &t.Rows[i]
		}
	}
	return nil
}

// ratio returns the ratio of the row's value in the column to the table's baseline.
func (t *Table) ratio(r *Row, column int) (float64, bool) {
	v := r.Values[column]
	if v == nil || t.Columns[column].Unit == "ratio" {
		return deref(v), v != nil
	}
	base := t.row(t.Baseline)
	if base == nil || base == r || slices.Contains(r.Lossy, t.Columns[column].Name) {
		return 0, false
	}
	of := base.Values[t.over(column)]
	if of == nil || *of == 0 {
		return 0, false
	}
	ratio := *v / *of
	return ratio, !math.IsInf(ratio, 0)
}

// runs returns the figures of the row's runs in the column, NaN for a run without one; nil if
// the study published no runs.
func (r *Row) runs(column int) []float64 {
	if len(r.Runs) == 0 {
		return nil
	}
	var out []float64
	for _, v := range r.Runs[column] {
		if v == nil {
			out = append(out, math.NaN())
			continue
		}
		out = append(out, *v)
	}
	return out
}

// over returns the index of the column that holds the baseline's figure.
func (t *Table) over(column int) int {
	name := t.Columns[column].Over
	if i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name }); name != "" && i >= 0 {
		return i
	}
	return column
}

// nearLink is the share of the link's goodput above which a figure counts as limited by the
// link.
const nearLink = 0.95

// limited reports whether the link limited the row or the baseline in the column. Their ratio
// then says little about the row's cost.
func (s *Study) limited(t *Table, r *Row, column int) bool {
	link, err := unit.ParseBitRate(s.Link)
	scale, is := map[string]float64{"Gbit/s": 1e9, "Mbit/s": 1e6, "Mibit/s": 1 << 20}[t.Columns[column].Unit]
	if err != nil || !is || t.Columns[column].Metric != result.Goodput {
		return false
	}
	full := func(v *float64) bool { return deref(v)*scale >= nearLink*float64(link) }
	base := t.row(t.Baseline)
	return full(r.Values[column]) || base != nil && full(base.Values[t.over(column)])
}

func deref(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}
