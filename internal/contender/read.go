package contender

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"

	"github.com/cnibench/cnibench/internal/strictyaml"
	"github.com/cnibench/cnibench/internal/text"
)

// Read decodes and checks one contender file. file is its name: its base
// without .yaml is the id that the contender must have. Syntax, unknown keys
// and wrong types come back as *strictyaml.Error with the line; contradictions
// between the values come back together, each naming the file and the key.
func Read(file string, r io.Reader) (*Contender, error) {
	var c Contender
	sum := sha256.New()
	if err := strictyaml.Decode(file, io.TeeReader(r, sum), &c); err != nil {
		return nil, err
	}
	c.SHA256 = hex.EncodeToString(sum.Sum(nil))
	if err := c.check(file); err != nil {
		return nil, err
	}
	return &c, nil
}

// Load reads every *.yaml file at the top of fsys, sorted by id.
func Load(fsys fs.FS) ([]*Contender, error) {
	return strictyaml.Load(fsys, "contenders", Read, func(c *Contender) string { return c.ID })
}

// Find is the contender with that id. Its error is a *text.UnknownError, which
// names the nearest id: wrong usage (exit 2).
func Find(all []*Contender, id string) (*Contender, error) {
	return text.Find("contender", id, all, func(x *Contender) string { return x.ID })
}
