//go:build linux

package bed

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"
)

// client speaks to the API server: the few requests of a test bed need no
// library.
type client struct {
	server string
	http   *http.Client
}

// newClient reads a kubeconfig of package pki.
func newClient(kubeconfig []byte, options Options) (*client, error) {
	field := func(name string) string {
		match := regexp.MustCompile(`(?m)^ *` + name + `: (\S+)$`).FindSubmatch(kubeconfig)
		if match == nil {
			return ""
		}
		return string(match[1])
	}
	var decodeErr error
	decode := func(name string) []byte {
		content, err := base64.StdEncoding.DecodeString(field(name))
		decodeErr = errors.Join(decodeErr, err)
		return content
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(decode("certificate-authority-data"))
	certificate, err := tls.X509KeyPair(decode("client-certificate-data"), decode("client-key-data"))
	if err := errors.Join(decodeErr, err); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return &client{server: field("server"), http: &http.Client{
		Timeout:   options.limit(10 * time.Second),
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}}},
	}}, nil
}

// do sends a request, with a body if there is one, and reads the answer into
// what out points to, if it does.
func (c *client) do(ctx context.Context, method, path string, body, out any) error {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, content)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, bytes.TrimSpace(answer))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}
