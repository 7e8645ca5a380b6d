package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/secret"
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
	settings := then.labRecorded()
	if text := settings[cniTextKey]; strings.Contains(text, "hunter2") || !strings.Contains(text, secret.Masked) {
		t.Fatalf("published: %s", text)
	}
	now := Request{Arena: "lab", CNIConf: file, CNITransport: "none", cniText: settings[cniTextKey]}
	if _, err := now.custom(); err != nil || !strings.Contains(now.cniText, "hunter2") {
		t.Errorf("resumed: %v, with %s", err, now.cniText)
	}
	for name, change := range map[string]func(){
		"changed": func() { write(`{"cniVersion":"1.0.0","name":"mine","type":"ptp","etcd_password":"hunter2"}`) },
		"gone":    func() { os.Remove(file) },
	} {
		change()
		now.cniText = settings[cniTextKey]
		if _, err := now.custom(); err == nil || !strings.Contains(err.Error(), "credential") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
