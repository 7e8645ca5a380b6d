package cli

import (
	"io"

	"github.com/cnibench/cnibench/internal/published"
	"github.com/cnibench/cnibench/internal/run"
)

// listPublished is the studies whose figures are here.
func listPublished(*run.Catalogue) ([][]string, any, error) {
	type value struct {
		ID       string   `json:"id"`
		Title    string   `json:"title"`
		By       string   `json:"by"`
		Date     string   `json:"date"`
		URL      string   `json:"url"`
		Compared []string `json:"compared_classes"`
		Tables   int      `json:"tables"`
	}
	all, err := published.Studies()
	if err != nil {
		return nil, nil, err
	}
	var rows [][]string
	var values []value
	for _, s := range all {
		values = append(values, value{s.ID, s.Title, s.Author, s.Date, s.URL, s.ComparedClasses(), len(s.Tables)})
		rows = append(rows, []string{s.ID, s.Author, s.Date, s.Title})
	}
	return rows, values, nil
}

// printPublished writes the figures of the studies with these ids.
func printPublished(w io.Writer, ids []string) error {
	all, err := published.Studies()
	if err != nil {
		return err
	}
	chosen, err := published.Select(all, ids)
	if err != nil {
		return err
	}
	for i := range chosen {
		if err := chosen[i].Print(w); err != nil {
			return err
		}
	}
	return nil
}
