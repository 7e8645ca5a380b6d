package cli

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/run"
	"github.com/cnibench/cnibench/internal/study"
)

// listStudies are the published studies that `cnibench run --study` repeats.
func listStudies(cat *run.Catalogue) ([][]string, any, error) {
	type value struct {
		ID         string            `json:"id"`
		Title      string            `json:"title"`
		By         string            `json:"by"`
		Summary    string            `json:"summary"`
		Flags      map[string]any    `json:"flags"`
		Published  map[string]any    `json:"flags_as_published"`
		Contenders []string          `json:"contenders"`
		Figures    []string          `json:"published_figures"`
		Tuning     string            `json:"tuning_profile,omitempty"`
		Versions   map[string]string `json:"versions,omitempty"`
		Pictures   []string          `json:"pictures"`
		Apart      []string          `json:"not_repeated"`
	}
	var rows [][]string
	var values []value
	for _, s := range cat.Studies {
		v := value{ID: s.ID, Title: s.Title, By: s.By, Summary: s.Summary, Contenders: cat.OfStudy(s.ID), Figures: s.Published, Tuning: s.Tuning, Versions: s.Versions, Apart: s.Differences}
		var err error
		if v.Flags, err = s.Flags(study.Machine, false); err != nil {
			return nil, nil, err
		}
		if v.Published, err = s.Flags(study.Published, false); err != nil {
			return nil, nil, err
		}
		for _, p := range s.Pictures {
			v.Pictures = append(v.Pictures, p.Title)
		}
		values = append(values, v)
		rows = append(rows, []string{s.ID, s.By, fmt.Sprint(s.Run.All["suite"]), fmt.Sprint(len(v.Contenders)), s.Summary})
	}
	return rows, values, nil
}
