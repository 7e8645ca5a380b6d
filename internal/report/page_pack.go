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

// packedScript is the bundle as every page carries it.
var packedScript = sync.OnceValues(func() (template.HTML, error) {
	return packed.Text([]byte(pageScript))
})
