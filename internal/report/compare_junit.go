package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"github.com/cnibench/cnibench/internal/analysis/compare"
	"github.com/cnibench/cnibench/internal/text"
)

// The elements of JUnit's format that all CI systems support. There is a suite for each
// contender with a test for each figure, and a suite for the runs themselves if they have
// faults or too few rounds. A figure that can't be judged is a skipped test, never a passed
// one.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Timestamp  string          `xml:"timestamp,attr,omitempty"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitMessage `xml:"failure"`
		Skipped *junitMessage `xml:"skipped"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

func writeCompareJUnit(w io.Writer, c *compare.Comparison, _ Options) error {
	all := junitSuites{Name: "cnibench compare"}
	places := placesOf(c)
	suite := func(contender string) *junitSuite {
		contender = text.SafeLine(contender)
		for i := range all.Suites {
			if all.Suites[i].Name == contender {
				return &all.Suites[i]
			}
		}
		s := junitSuite{Name: contender, Properties: []junitProperty{
			{"old", text.SafeLine(runText(&c.Old))}, {"new", text.SafeLine(runText(&c.New))},
		}}
		if !c.New.Started.IsZero() {
			s.Timestamp = c.New.Started.UTC().Format(time.RFC3339)
		}
		for _, note := range c.Notes {
			s.Properties = append(s.Properties, junitProperty{"note", text.SafeLine(note)})
		}
		for _, d := range c.Differences {
			s.Properties = append(s.Properties, junitProperty{"differs", text.SafeLine(differenceText(d))})
		}
		all.Suites = append(all.Suites, s)
		return &all.Suites[len(all.Suites)-1]
	}
	add := func(s *junitSuite, test junitCase) {
		test.Class = "cnibench." + s.Name
		s.Tests, all.Tests = s.Tests+1, all.Tests+1
		if test.Failure != nil {
			s.Failures, all.Failures = s.Failures+1, all.Failures+1
		}
		if test.Skipped != nil {
			s.Skipped, all.Skipped = s.Skipped+1, all.Skipped+1
		}
		s.Cases = append(s.Cases, test)
	}
	for i := range c.Changes {
		change := &c.Changes[i]
		outcome := fmt.Sprintf("%s: %s → %s, %s", signOf(change, c.FailOn).word, places.side(change, change.Old), places.side(change, change.New), ratio(change))
		test := junitCase{Name: text.SafeLine(change.Step + " " + change.Metric), Output: outcome}
		switch {
		case change.Failed:
			test.Failure = &junitMessage{Message: outcome, Type: "worse", Text: fmt.Sprintf("p %s, adjusted %s; old %v; new %v",
				pText(change.P), pText(change.PAdjusted), change.Old.Values, change.New.Values)}
		case change.Direction == compare.Unknown:
			test.Skipped = &junitMessage{Message: "too few rounds or requests to judge: " + outcome}
		}
		add(suite(places.contender(change.Contender, change.Underlay, change.Kernel)), test)
	}
	for i, f := range c.Faults {
		test := junitCase{Name: fmt.Sprint("fault ", i+1), Output: text.SafeLine(faultText(f))}
		if f.Failed {
			test.Failure = &junitMessage{Message: text.SafeLine(faultText(f)), Type: "broken"}
		}
		add(suite("runs"), test)
	}
	if cannotFail(c) {
		add(suite("runs"), junitCase{Name: "rounds", Failure: &junitMessage{Message: cannotFailText(c), Type: "rounds"}})
	}
	for _, m := range c.Missing {
		test := junitCase{Name: text.SafeLine(m.Step + " " + m.Metric)}
		if m.Metric == "" {
			test.Name = text.SafeLine(m.Step)
		}
		message := &junitMessage{Message: text.SafeLine(missingText(m, places)), Type: "missing"}
		if m.Failed {
			test.Failure = message
		} else {
			message.Type, test.Skipped = "", message
		}
		add(suite(places.contender(m.Contender, m.Underlay, "")), test)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
