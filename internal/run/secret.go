package run

import (
	"encoding/json"
	"regexp"
	"slices"
)

// masked stands in a published text for what looks like a credential.
const masked = "(masked)"

var (
	secretKey = regexp.MustCompile(`(?i)pass(word|wd|phrase)|secret|token|credential|auth|bearer|psk|private|(api|access|secret|client|pre.?shared|encryption|wireguard|ipsec)[-_ ]?key|kubeconfig`)
	// secretText is a user with a password in a URL, or a key as PEM, of
	// WireGuard or of a cloud.
	secretText = regexp.MustCompile(`://[^/@\s]*@|-----BEGIN |^[A-Za-z0-9+/]{43}=$|\bAKIA[0-9A-Z]{16}\b|\beyJ[\w-]+\.`)
)

// maskSecrets returns a JSON text in which the values that look like
// credentials are masked, and the sorted names of their keys. A text without
// such values stays as it is.
func maskSecrets(text string) (string, []string) {
	var doc any
	if json.Unmarshal([]byte(text), &doc) != nil {
		return masked, []string{"the whole text, which is no JSON"}
	}
	keys := map[string]bool{}
	doc = maskValue(doc, "", false, keys)
	if len(keys) == 0 {
		return text, nil
	}
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic(err) // it has just been read
	}
	var names []string
	for key := range keys {
		names = append(names, key)
	}
	slices.Sort(names)
	return string(out), names
}

// maskValue masks the texts and numbers of v, whose nearest key is key; secret says
// that they are below the key of a credential.
func maskValue(v any, key string, secret bool, keys map[string]bool) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			v[name] = maskValue(value, name, secret || secretKey.MatchString(name), keys)
		}
		return v
	case []any:
		for i, value := range v {
			v[i] = maskValue(value, key, secret, keys)
		}
		return v
	case string:
		if v == masked || v == "" || !secret && !secretText.MatchString(v) {
			return v
		}
	case float64:
		if !secret {
			return v
		}
	default: // a truth value or null is no secret
		return v
	}
	keys[key] = true
	return masked
}
