// Package packed makes what a page carries small, and the policy under which it runs. It
// may not know what a page shows. Next: ../html.go, ../assets/loader.js, which unpacks.
package packed

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html/template"
)

// JSON is a value for the page's script to unpack.
func JSON(value any) (template.HTML, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	return Text(encoded)
}

// Text is content as gzip in base64, whose letters end no element.
func Text(content []byte) (template.HTML, error) {
	var packed bytes.Buffer
	letters := base64.NewEncoder(base64.StdEncoding, &packed)
	compressed, err := gzip.NewWriterLevel(letters, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	for _, step := range []func() error{
		func() error { _, err := compressed.Write(content); return err },
		compressed.Close, letters.Close,
	} {
		if err := step(); err != nil {
			return "", err
		}
	}
	return template.HTML(packed.String()), nil //nolint:gosec // letters of base64
}

// Policy lets the given scripts run, by their hashes, and nothing be loaded from any
// address, whatever the data says. Charts set inline styles, and a drawing becomes a PNG
// by way of an image that the script made.
func Policy(live bool, scripts ...string) string {
	policy := "default-src 'none'; script-src"
	for _, script := range scripts {
		hash := sha256.Sum256([]byte(script))
		policy += " 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
	}
	policy += "; style-src 'unsafe-inline'; img-src blob:; base-uri 'none'; form-action 'none'"
	if live {
		policy += "; connect-src 'self'"
	}
	return policy
}
