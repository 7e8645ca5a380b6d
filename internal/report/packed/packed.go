// Package packed compresses the script and the data of a page, and makes the page's
// Content-Security-Policy. It may not know what a page shows. Next: ../html.go and
// ../assets/loader.js, which unpacks.
package packed

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html/template"
)

// JSON returns the packed JSON of a value.
func JSON(value any) (template.HTML, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	return Text(encoded)
}

// Text returns content as gzip in base64. No letter of base64 can end an HTML element.
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

// Policy returns a policy that allows the given scripts, by their hashes, and forbids to
// load anything from any address, whatever the data says. It allows inline styles for
// charts, and images that the script makes, by which a drawing becomes a PNG.
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
