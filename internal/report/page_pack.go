package report

import (
	_ "embed" // the page's loader
	"html/template"
	"sync"

	"github.com/cnibench/cnibench/internal/report/packed"
)

// pageLoader unpacks the page's script and data.
//
//go:embed assets/loader.js
var pageLoader string

// packedScript returns the packed script, which is the same in every page.
var packedScript = sync.OnceValues(func() (template.HTML, error) {
	return packed.Text([]byte(pageScript))
})
