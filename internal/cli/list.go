package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/cli/cmdutil"
	"github.com/cnibench/cnibench/internal/cli/tunecmd"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host/programs"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/text"
	"github.com/cnibench/cnibench/internal/workload"
)

// listing is one kind of thing to list: a table for people, values for JSON.
type listing struct {
	name   string
	header []string
	rows   func(*run.Catalogue) (rows [][]string, values any, err error)
	print  func(w io.Writer, ids []string) error // everything about these; nil: their values as YAML
}

var listings = []listing{
	{name: "contenders", header: []string{"Contender", "Product", "Pods", "Transport", "Overhead", "Policy", "Encryption", "Lab"}, rows: listContenders},
	{name: "suites", header: []string{"Suite", "Steps", "Rounds", "Duration", "Summary"}, rows: listSuites},
	{name: "studies", header: []string{"Study", "By", "Suite", "Contenders", "Summary"}, rows: listStudies},
	{name: "published", header: []string{"Published", "By", "Date", "Title"}, rows: listPublished, print: printPublished},
	{name: "scenarios", header: []string{"Scenario", "Needs", "Weights", "Summary"}, rows: listScenarios},
	{name: "workloads", header: []string{"Workload", "Parameters", "Programs", "Summary"}, rows: listWorkloads},
	{name: "metrics", header: []string{"Metric", "Unit", "Better", "Meaning"}, rows: listMetrics},
	{name: "checks", header: []string{"Check", "Question"}, rows: listChecks},
	{name: "findings", header: []string{"Finding", "Severity", "Title"}, rows: listFindings},
	{name: "tunings", header: []string{"Setting", "Scope", "Study", "Parameters", "Summary"}, rows: func(*run.Catalogue) ([][]string, any, error) { return tunecmd.List() }},
}

func newListCmd() *cobra.Command {
	var asJSON bool
	var names []string
	for _, l := range listings {
		names = append(names, l.name)
	}
	c := &cobra.Command{
		Use:   "list " + strings.Join(names, "|") + " [ID...]",
		Short: "List what there is: " + cmdutil.JoinOr(names),
		Example: `  cnibench list contenders
  cnibench list published                  # the studies whose figures are here
  cnibench list published ducastel-2024    # one study: source, method, caveats, every figure
  cnibench list tunings irq rps            # everything about these two`,
		Args:      cobra.MinimumNArgs(1),
		ValidArgs: names,
		RunE: func(c *cobra.Command, args []string) error {
			l, err := text.Find("listing", args[0], listings, func(l listing) string { return l.name })
			if err != nil {
				return err
			}
			ids := args[1:]
			if len(ids) > 0 && l.print != nil {
				return l.print(c.OutOrStdout(), ids)
			}
			cat, err := run.LoadCatalogue()
			if err != nil {
				return err
			}
			rows, values, err := l.rows(cat)
			if err != nil {
				return err
			}
			if len(ids) > 0 {
				if values, err = l.choose(rows, values, ids); err != nil {
					return err
				}
			}
			if asJSON {
				return cmdutil.PrintJSON(c.OutOrStdout(), map[string]any{"schema": "cnibench/list/1", l.name: values})
			}
			if len(ids) > 0 {
				out, err := json.Marshal(values)
				if err == nil {
					out, err = yaml.JSONToYAML(out)
				}
				if err != nil {
					return err
				}
				_, err = c.OutOrStdout().Write(out)
				return err
			}
			cmdutil.PrintTable(c.OutOrStdout(), l.header, rows)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return c
}

// choose returns those of the values, one a row, whose rows begin with the ids.
func (l listing) choose(rows [][]string, values any, ids []string) (any, error) {
	all := reflect.ValueOf(values)
	chosen := reflect.MakeSlice(all.Type(), 0, len(ids))
	for _, id := range ids {
		row, err := text.Find(strings.ToLower(l.header[0]), id, rows, func(row []string) string { return row[0] })
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(rows, func(r []string) bool { return r[0] == row[0] })
		chosen = reflect.Append(chosen, all.Index(at))
	}
	return chosen.Interface(), nil
}

// contenderValue is a contender as JSON shows it.
type contenderValue struct {
	ID           string             `json:"id"`
	Product      string             `json:"product"`
	Version      string             `json:"version,omitempty"`
	Summary      string             `json:"summary"`
	Homepage     string             `json:"homepage,omitempty"`
	Studies      []string           `json:"studies,omitempty"`
	Attach       string             `json:"attach"`
	Transport    string             `json:"transport"`
	Services     string             `json:"services"`
	Overhead     int                `json:"overhead_bytes"`
	MTU          string             `json:"mtu"`
	Policy       contender.Policy   `json:"policy"`
	Encryption   string             `json:"encryption"`
	KeyRotation  bool               `json:"key_rotation"`
	NoKubeProxy  bool               `json:"kube_proxy_replacement"`
	IPv6         bool               `json:"ipv6"`
	Arches       []string           `json:"architectures"`
	Status       string             `json:"status"`
	Lab          bool               `json:"lab"`
	Reason       string             `json:"lab_reason,omitempty"`
	Remedy       string             `json:"lab_remedy,omitempty"`
	Requirements contender.Requires `json:"requires"`
}

func listContenders(cat *run.Catalogue) ([][]string, any, error) {
	var rows [][]string
	var values []contenderValue
	for _, c := range cat.Contenders {
		f := c.Features
		v := contenderValue{
			ID: c.ID, Product: c.Product, Version: c.Version, Summary: c.Summary, Homepage: c.Homepage, Studies: c.Studies,
			Attach: c.Datapath.Attach, Transport: c.Datapath.Transport, Services: c.Datapath.Services, Overhead: int(c.Datapath.Overhead), MTU: c.Datapath.MTU,
			Policy: f.Policy, Encryption: f.Encryption, KeyRotation: f.KeyRotation, NoKubeProxy: f.KubeProxyReplacement, IPv6: f.IPv6,
			Arches: f.Architectures, Status: f.Status, Lab: c.Lab.None == "", Reason: c.Lab.None, Remedy: c.Lab.Remedy, Requirements: c.Requires,
		}
		values = append(values, v)
		inLab := "yes"
		if !v.Lab {
			inLab = "no: " + c.Lab.None
		}
		rows = append(rows, []string{c.ID, strings.TrimSpace(c.Product + " " + c.Version), v.Attach, v.Transport, fmt.Sprintf("%d B", v.Overhead), policyWords(f.Policy), f.Encryption, inLab})
	}
	return rows, values, nil
}

func policyWords(p contender.Policy) string {
	var words []string
	for _, w := range []struct {
		has  bool
		word string
	}{{p.Ingress, "in"}, {p.Egress, "out"}, {p.L7, "L7"}} {
		if w.has {
			words = append(words, w.word)
		}
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, "+")
}

func listSuites(cat *run.Catalogue) ([][]string, any, error) {
	type value struct {
		ID       string        `json:"id"`
		Summary  string        `json:"summary"`
		Rounds   int           `json:"rounds,omitempty"` // none: by the number of contenders
		Duration string        `json:"duration"`
		Steps    []result.Step `json:"steps"`
	}
	var rows [][]string
	var values []value
	for _, s := range cat.Suites {
		steps, err := s.Expand("auto", nil)
		if err != nil {
			return nil, nil, err
		}
		var ids []string
		for _, step := range steps {
			ids = append(ids, step.ID)
		}
		values = append(values, value{s.ID, s.Summary, s.Rounds, fmt.Sprint(s.Duration), steps})
		shown := strings.Join(ids, " ")
		if len(ids) > 6 {
			shown = fmt.Sprintf("%s … (%d)", strings.Join(ids[:4], " "), len(ids))
		}
		rows = append(rows, []string{s.ID, shown, s.RoundsText(), fmt.Sprint(s.Duration), s.Summary})
	}
	return rows, values, nil
}

func listWorkloads(*run.Catalogue) ([][]string, any, error) {
	type value struct {
		Name     string           `json:"name"`
		Summary  string           `json:"summary"`
		Params   []workload.Param `json:"params"`
		Metrics  []string         `json:"metrics"`
		Programs []string         `json:"programs"`
	}
	var rows [][]string
	var values []value
	for _, w := range workload.All() {
		info := w.Info()
		v := value{Name: info.Name, Summary: info.Summary, Metrics: info.Metrics, Params: append([]workload.Param{}, info.Params...), Programs: append([]string{}, programs.Workload(info.Name)...)}
		var words []string
		for _, p := range info.Params {
			words = append(words, fmt.Sprintf("%s=%v", p.Name, p.Default))
		}
		values = append(values, v)
		rows = append(rows, []string{info.Name, strings.Join(words, " "), strings.Join(v.Programs, " "), info.Summary})
	}
	return rows, values, nil
}

func listMetrics(*run.Catalogue) ([][]string, any, error) {
	var rows [][]string
	for _, m := range result.Metrics() {
		rows = append(rows, []string{m.Name, m.Unit, m.Better, m.Help})
	}
	return rows, result.Metrics(), nil
}
