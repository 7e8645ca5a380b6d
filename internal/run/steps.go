package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/suite"
)

// suite returns the suite that the request chooses, with the request's steps and changes.
func (f *Request) suite(catalogue *Catalogue) (s *suite.Suite, err error) {
	name := f.Suite
	isFile := strings.ContainsRune(name, filepath.Separator) || strings.HasSuffix(name, ".yaml")
	if isFile && f.SuiteText == "" {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, exit.Usage("--suite: %w", err)
		}
		f.SuiteText = string(text)
	}
	if f.SuiteText == "" && !isFile {
		s, err = catalogue.Suite(name)
	} else if s, err = suite.Read(strings.TrimSuffix(filepath.Base(name), ".yaml")+".yaml", strings.NewReader(f.SuiteText)); err != nil {
		err = exit.Usage("--suite: %w", err)
	}
	if err != nil {
		return nil, err
	}
	if len(f.Steps) > 0 {
		if s, err = s.Only(f.Steps); err != nil {
			return nil, fmt.Errorf("--steps: %w", err)
		}
	}
	if len(f.Changes) > 0 {
		if s, err = s.Set(f.Changes); err != nil {
			return nil, exit.Usage("--set %w", err)
		}
	}
	return s, nil
}
