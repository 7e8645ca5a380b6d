package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is published of a CNI configuration has no credential, and a resumed run
// asks for the file again.
func TestCNIConfSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "net.conf")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"cniVersion":"1.0.0","name":"mine","type":"bridge","etcd_password":"hunter2"}`)
	then := Request{Arena: "lab", CNIConf: file, CNITransport: "none"}
	if _, err := then.custom(); err != nil {
		t.Fatal(err)
	}
	settings := then.Settings()
	if text := settings[cniTextKey]; strings.Contains(text, "hunter2") || !strings.Contains(text, masked) {
		t.Fatalf("published: %s", text)
	}
	now := Request{Arena: "lab", CNIConf: file, CNITransport: "none", CNIText: settings[cniTextKey]}
	if _, err := now.custom(); err != nil || !strings.Contains(now.CNIText, "hunter2") {
		t.Errorf("resumed: %v, with %s", err, now.CNIText)
	}
	for name, change := range map[string]func(){
		"changed": func() { write(`{"cniVersion":"1.0.0","name":"mine","type":"ptp","etcd_password":"hunter2"}`) },
		"gone":    func() { os.Remove(file) },
	} {
		change()
		now.CNIText = settings[cniTextKey]
		if _, err := now.custom(); err == nil || !strings.Contains(err.Error(), "credential") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

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
		{"no JSON", `password: hunter2`, masked, []string{"the whole text, which is no JSON"}},
	} {
		got, keys := maskSecrets(test.text)
		if diff := cmp.Diff(test.keys, keys); diff != "" {
			t.Errorf("%s: keys %s", test.name, diff)
		}
		if compact := strings.Join(strings.Fields(got), ""); compact != strings.Join(strings.Fields(test.want), "") {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
