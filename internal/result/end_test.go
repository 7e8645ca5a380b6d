package result_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/result"
)

func TestEnd(t *testing.T) {
	dir, store := create(t)
	s := aSample("host", "dts", 1)
	file, err := store.Raw(s).Create("client.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	file.Close()
	seal(t, store, s)
	if _, ended, err := result.ListChanges(dir); ended || err != nil {
		t.Errorf("ended %v before the end, %v", ended, err)
	}
	if err := store.End(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	store.Close()
	if err := validate(t, compile(t, "run-1.schema.json"), read(t, dir, "run.json")); err != nil {
		t.Error(err)
	}
	if changed, ended, err := result.ListChanges(dir); len(changed) > 0 || !ended || err != nil {
		t.Errorf("%v, ended %v, %v right after the end", changed, ended, err)
	}
	raw := filepath.Join(dir, "raw", "host", "1", "dts")
	if err := os.WriteFile(filepath.Join(raw, "client.json"), []byte("{1}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "raw", "later"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "raw", "later", "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	changed, _, err := result.ListChanges(dir)
	if diff := cmp.Diff([]string{filepath.Join(dir, "raw/host/1/dts") + " was changed after the end of the run", filepath.Join(dir, "raw/later") + " came after the end of the run"}, changed); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	store, rec, err := result.Resume(dir)
	if err != nil {
		t.Fatal(err)
	}
	store.Close()
	if _, ended, err := result.ListChanges(dir); rec.Run.End != nil || ended || err != nil {
		t.Errorf("a resumed run has ended: %v, %v", ended, err)
	}
}
