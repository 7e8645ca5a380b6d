package install

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cnibench/cnibench/internal/contender"
)

// secretStep makes a Secret with a new key.
type secretStep struct{ *contender.Secret }

func (s secretStep) objects(context.Context, *job) ([]*unstructured.Unstructured, error) {
	value, err := generate(s.Generate)
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", s.Name, err)
	}
	o := object("v1", "Secret", s.Namespace, s.Name)
	o.Object["type"] = "Opaque"
	o.Object["data"] = map[string]any{s.Key: base64.StdEncoding.EncodeToString([]byte(value))}
	return []*unstructured.Unstructured{o}, nil
}

// generate returns a new random key of that form.
func generate(form string) (string, error) {
	switch form {
	case "psk": // 36 random bytes in base64, as Calico VPP's page has it
		return base64.StdEncoding.EncodeToString(random(36)), nil
	case "cilium-ipsec":
		// Key 3, AES-128 in GCM with 4 bytes of salt and a 128-bit check
		// value, as Cilium's page on IPsec has it (Documentation/security/network/encryption-ipsec.rst).
		return "3 rfc4106(gcm(aes)) " + hex.EncodeToString(random(20)) + " 128", nil
	}
	return "", fmt.Errorf("no generator %q; name psk or cilium-ipsec in the file of the contender", form)
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails: crypto/rand ends the program instead
	return b
}
