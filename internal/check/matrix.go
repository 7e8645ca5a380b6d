package check

import (
	"fmt"
	"slices"
	"strings"
)

// Matrix is what several checks found, one row a contender.
type Matrix struct {
	Columns []Column `json:"columns"`
	Rows    []Row    `json:"rows"`
}

// Column is a part of a check: the cases of one question.
type Column struct {
	Check string `json:"check"`
	Name  string `json:"name"`
}

// Row is a contender.
type Row struct {
	Contender string `json:"contender"`
	Cells     []Cell `json:"cells"` // one for each column
}

// Cell is what became of a column's cases. Without any case it is a skip.
type Cell struct {
	Verdict Conformance `json:"verdict"`
	Found   string      `json:"found,omitempty"`
	Cases   int         `json:"cases"`  // that were asked
	Failed  int         `json:"failed"` // of those
}

// question is a column with the names of its cases.
type question struct {
	check, name string
	order       int // in the table
	has         func(name string) bool
}

// columns are those of a matrix, in order. A case is of the first whose
// function knows its name, so that the general ones stand last, as their order
// in the table has it.
var columns = []question{
	{"mtu", "size", 0, isCase("size")},
	{"mtu", "TCP", 1, isCase("tcp")},
	{"encryption", "pod", 2, begins("pod")},
	{"encryption", "Service", 3, begins("service")},
	{"policy", "IPv6", 11, contains("ipv6")},
	{"policy", "SCTP", 10, contains("sctp")},
	{"policy", "ipBlock", 9, contains("ip-block")},
	{"policy", "port range", 8, contains("port-range")},
	{"policy", "ports", 7, func(n string) bool {
		return contains("port")(n) || contains("udp")(n) || contains("protocol")(n)
	}},
	{"policy", "ingress", 5, begins("ingress")},
	{"policy", "egress", 6, begins("egress")},
	{"policy", "start", 12, func(n string) bool { return isCase(startCase)(n) || isCase(engineCase)(n) }},
	{"policy", "effect", 13, isCase("effect")},
	{"policy", "removal", 14, isCase("removal")},
}

func isCase(want string) func(string) bool { return func(n string) bool { return n == want } }
func begins(with string) func(string) bool {
	return func(n string) bool { return strings.HasPrefix(n, with) }
}
func contains(word string) func(string) bool {
	return func(n string) bool { return strings.Contains(n, word) }
}

// NewMatrix arranges the results. A contender that was checked on several
// underlays has the worst of them; columns that nobody was asked are left out.
func NewMatrix(results []Result) Matrix {
	var order []int
	for i := range columns {
		if slices.ContainsFunc(results, func(r Result) bool { return r.Check == columns[i].check }) {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return columns[a].order - columns[b].order })
	m := Matrix{Columns: []Column{}, Rows: []Row{}}
	for _, i := range order {
		m.Columns = append(m.Columns, Column{columns[i].check, columns[i].name})
	}
	var contenders []string
	for _, r := range results {
		if !slices.Contains(contenders, r.Contender) {
			contenders = append(contenders, r.Contender)
		}
	}
	slices.Sort(contenders)
	for _, id := range contenders {
		row := Row{Contender: id, Cells: []Cell{}}
		for _, i := range order {
			row.Cells = append(row.Cells, cellOf(results, id, i))
		}
		m.Rows = append(m.Rows, row)
	}
	return m
}

// cellOf gathers the cases of one contender and column.
func cellOf(results []Result, contender string, column int) Cell {
	all := Result{}
	for _, r := range results {
		if r.Contender != contender || r.Check != columns[column].check {
			continue
		}
		if r.Error != "" && len(r.Cases) == 0 {
			return Cell{Verdict: Skip, Found: "error"}
		}
		for _, c := range r.Cases {
			of := func(q question) bool { return q.check == r.Check && q.has(c.Name) }
			if slices.IndexFunc(columns, of) == column {
				all.Cases = append(all.Cases, c)
			}
		}
	}
	cell := Cell{Verdict: all.Verdict()}
	for _, c := range all.Cases {
		if c.Verdict != Skip {
			cell.Cases++
		}
		if c.Verdict == Fail {
			cell.Failed++
		}
	}
	if told := all.MainCase(); told != nil {
		cell.Found = told.Found
		if ms, ok := told.Values["effect_ms"]; ok {
			cell.Found = fmt.Sprintf("%d ms", ms)
		}
	}
	return cell
}

// String returns the cell in words: "fits", "no: open (7 of 9)", "–".
func (c Cell) String() string {
	switch {
	case c.Verdict == Skip && c.Found == "":
		return "–"
	case c.Verdict == Skip:
		return "– " + c.Found
	case c.Verdict == Fail && c.Cases > 1:
		return fmt.Sprintf("no: %s (%d of %d)", c.Found, c.Failed, c.Cases)
	case c.Verdict == Fail:
		return "no: " + c.Found
	}
	return c.Found
}
