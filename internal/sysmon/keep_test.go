package sysmon

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestKeepingOpensAgain: a descriptor that fails, as one of a CPU that went
// offline and came back, is no loss for ever.
func TestKeepingOpensAgain(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("7"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := newKeepingFS(dir)
	for range 3 {
		b, err := fs.ReadFile(folder, "f")
		if err != nil || string(b) != "7" {
			t.Fatalf("%q, %v", b, err)
		}
		folder.open["f"].Close() // every read from it fails now
	}
}
