package secret

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMask(t *testing.T) {
	for _, test := range []struct {
		name, text, want string
		keys             []string
	}{
		{"none", `{"type": "bridge", "ipam": {"subnet": "usePodCidr", "keyed": 1}}`, `{"type": "bridge", "ipam": {"subnet": "usePodCidr", "keyed": 1}}`, nil},
		{"by key", `{"a":[{"etcd_password":"hunter2"}],"apiKey":7,"auth":{"user":"u"},"token":"","useToken":true}`,
			`{"a":[{"etcd_password":"(masked)"}],"apiKey":"(masked)","auth":{"user":"(masked)"},"token":"","useToken":true}`, []string{"apiKey", "etcd_password", "user"}},
		{"by value", `{"endpoint":"https://root:hunter2@etcd:2379","k":"-----BEGIN PRIVATE KEY-----"}`,
			`{"endpoint":"(masked)","k":"(masked)"}`, []string{"endpoint", "k"}},
		{"masked before", `{"password":"(masked)"}`, `{"password":"(masked)"}`, nil},
		{"no JSON", `password: hunter2`, Masked, []string{"the whole text, which is no JSON"}},
	} {
		got, keys := Mask(test.text)
		if diff := cmp.Diff(test.keys, keys); diff != "" {
			t.Errorf("%s: keys %s", test.name, diff)
		}
		if compact := strings.Join(strings.Fields(got), ""); compact != strings.Join(strings.Fields(test.want), "") {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
