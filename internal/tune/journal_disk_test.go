package tune

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/atomicfile"
	"github.com/cnibench/cnibench/internal/testutil/disktest"
)

// Whatever write or sync of the journal fails, and whatever a power cut leaves:
// each value that was noted is in the journal, and the journal can be read.
func TestDiskFails(t *testing.T) {
	suite := journalSuite()
	suite.Every(t)
	suite.Finds(t, disktest.NoSync, disktest.NoFolderSync, disktest.LateWrite, disktest.Rewrite)
}

func journalSuite() disktest.Suite[map[string]bool] {
	const boot = "this boot"
	intent := func(n int) line {
		return line{Step: "intent", N: n, Change: &Entry{Setting: fmt.Sprint(n), From: "1", To: "2", Written: time.Unix(0, 0)}}
	}
	return disktest.Suite[map[string]bool]{Do: func(d *disktest.Disk) map[string]bool {
		noted := map[string]bool{}
		j, err := openJournal(d.Dir, boot, func(*os.Root) atomicfile.Folder { return d.Folder() })
		if err != nil {
			return noted
		}
		defer j.lock.Close() // Close would remove an empty folder
		for range 4 {
			n := len(j.entries)
			if j.note(intent(n)) == nil {
				noted[fmt.Sprint(n)] = true
			}
		}
		if len(noted) > 1 {
			delete(noted, "0") // it may have ended, with or without an answer
			_ = j.note(line{Step: "ended", N: 0, How: "restored"})
		}
		return noted
	}, Check: func(t disktest.Reporter, noted map[string]bool, dir string) {
		j, err := OpenJournal(dir, boot)
		if err != nil {
			t.Fatalf("the journal cannot be read: %v", err)
		}
		defer j.Close()
		have := map[string]bool{}
		for _, e := range j.Entries() {
			have[e.Setting] = true
			if e.From != "1" || e.To != "2" {
				t.Errorf("read wrong: %+v", e)
			}
		}
		for setting := range noted {
			if !have[setting] {
				t.Errorf("setting %s was noted and is lost: %v", setting, have)
			}
		}
	}}
}
