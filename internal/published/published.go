// Package published holds what others measured: figures of studies, embedded
// as data with their source, how they were read and what to beware of. It
// computes nothing but ratios and opens no file. Next: beside.go sets a
// study's ratios beside one's own; the figures are in data/.
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
	ID       string `yaml:"id"` // of its file, without .yaml
	Title    string `yaml:"title"`
	Author   string `yaml:"author"`
	Date     string `yaml:"date"` // in words
	URL      string `yaml:"url"`
	File     string `yaml:"file"` // in the repository that URL names
	Hardware string `yaml:"hardware"`
	Link     string `yaml:"link"` // the most goodput that its link carries, e.g. 9.9 Gbit/s; "" where unknown
	Software string `yaml:"software"`
	Method   string `yaml:"method"`
	// Conditions are what else can explain a difference, by the keys of ConditionKeys.
	Conditions map[string]string `yaml:"conditions"`
	Caveats    []string          `yaml:"caveats"`
	Tables     []Table           `yaml:"tables"`
}

// Table is figures that were measured together, so that they may be compared
// with each other.
type Table struct {
	Title    string   `yaml:"title"`
	Hardware string   `yaml:"hardware"` // where it is not the study's
	Read     string   `yaml:"read"`     // how the figures were read: one of Readings
	Baseline string   `yaml:"baseline"` // the row of the host network; "" where there is none
	Load     float64  `yaml:"load"`     // the request rate over the highest that the study's host network sustained; 0 where rates have no part
	Note     string   `yaml:"note"`
	Columns  []Column `yaml:"columns"`
	Rows     []Row    `yaml:"rows"`
}

// Column is one quantity. Where cnibench measures the same, Class is the class
// of its steps and Metric the name in its catalogue.
type Column struct {
	Name   string `yaml:"name"`
	Unit   string `yaml:"unit"` // what the figures are, whatever the source calls them; "ratio" is to the baseline
	Class  string `yaml:"class"`
	Metric string `yaml:"metric"`
	Over   string `yaml:"over"` // the column of the baseline's figure; "" is this one
}

// Row is one configuration, by the study's name and by the id of the contender
// that stands for it.
type Row struct {
	Name      string     `yaml:"name"`
	Contender string     `yaml:"contender"` // "" where there is none
	Values    []*float64 `yaml:"values"`    // as Columns; nil where the study has none
	// Runs are, where the study published them, the figures of each of its runs instead of
	// Values, as Columns; their medians become Values. A run that has none is nil.
	Runs  [][]*float64 `yaml:"runs"`
	Lossy []string     `yaml:"lossy"` // columns in which so much was lost that the figure has no ratio
}

// Readings are the ways in which figures were read, with their meaning.
func Readings() map[string]string {
	return map[string]string{
		"table":       "printed as numbers",
		"text":        "from the running text",
		"chart label": "the label of a bar or point of a chart",
		"pixels":      "measured on the picture of a chart",
		"computed":    "computed from published raw data",
	}
}

// Studies are all, by id. An error means that this program was built with a
// bad file.
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

// Select is the studies with these ids, all of them where there is none. Its
// error is a *text.UnknownError.
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

// Read decodes and checks a study. file is its name: ID and ".yaml".
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

// medians makes Values of Runs, where there are any.
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

// ratio is the row's value at the column as a ratio to the table's baseline.
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

// runs are the figures of the row's runs at the column, NaN for one that has none; nil
// where the study published none.
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

// over is the place of the column that the baseline's figure is in.
func (t *Table) over(column int) int {
	name := t.Columns[column].Over
	if i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name }); name != "" && i >= 0 {
		return i
	}
	return column
}

// nearLink is the share of the link's goodput from which the link, and not
// what was measured, was the limit.
const nearLink = 0.95

// limited says that the link limited the row at the column, or the baseline
// beside it, so that their ratio tells little of what the row costs.
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
