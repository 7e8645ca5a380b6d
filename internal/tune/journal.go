package tune

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/atomicfile"
)

// Journal holds the old values of what was applied. Each step is a line of JSON, which is
// on disk before the machine is changed. If a crash leaves the last line incomplete, that
// change was not made. Apply adds entries; Revert reads them backwards and removes the
// file.
type Journal struct {
	entries []*Entry
	boot    string // current boot id of the machine
	began   string // boot id when the journal was begun
	disk    appender
	folder  atomicfile.Folder
	path    string
	lock    *os.File
	// By is noted with each change that is made from now on.
	By string
}

// Entry is one change of the journal.
type Entry struct {
	Setting string `json:"setting"`
	Place
	From    string    `json:"from"` // value before the change
	To      string    `json:"to"`   // value to set
	Done    bool      `json:"-"`    // the value was set and read back; if false, a crash may have come between
	Read    string    `json:"-"`    // value read back; only if Done
	Ended   string    `json:"-"`    // how the change ended: restored, untouched, gone, rebooted; "" while it is in effect
	Written time.Time `json:"written"`
	// NetNS is the network namespace that the value belongs to; "" if the whole machine
	// has one value.
	NetNS string `json:"netns,omitempty"`
	// By names the bench that made the change; "" for an administrator's.
	By string `json:"by,omitempty"`
}

// Schema is the version of the journal's lines.
const Schema = "cnibench/tune-journal/1"

// line is one line of the journal.
type line struct {
	Schema string `json:"schema,omitempty"` // first line only
	Boot   string `json:"boot,omitempty"`   // first line only
	Step   string `json:"step,omitempty"`   // intent, done, ended
	N      int    `json:"n"`                // the entry, from 0
	Change *Entry `json:"change,omitempty"` // of step intent
	Read   string `json:"read,omitempty"`   // of step done
	How    string `json:"how,omitempty"`    // of step ended
}

// appender writes the journal's lines; tests replace it with one that fails.
type appender interface {
	// Append writes the line and returns when it is on disk.
	Append(line []byte) error
}

// journalFile is the journal's name in the state folder.
const journalFile = "tune.journal"

// StateDir returns the folder for what outlives a run: /var/lib/cnibench for root, else
// the user's own state folder (XDG base directories).
func StateDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/cnibench", nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "cnibench"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local/state/cnibench"), nil
}

// ErrBusy means that another cnibench has the journal open.
var ErrBusy = errors.New("another cnibench is tuning this machine; wait for it to end")

// OpenJournal reads the journal in the folder, which need not exist. boot is the machine's
// boot id. The caller closes the journal. OpenJournal returns ErrBusy, or an error if the
// journal is damaged before its last line; it does not change a damaged journal.
func OpenJournal(dir, boot string) (*Journal, error) { return openJournal(dir, boot, atomicfile.Root) }

func openJournal(dir, boot string, layer func(*os.Root) atomicfile.Folder) (*Journal, error) {
	j := &Journal{boot: boot, began: boot, path: filepath.Join(dir, journalFile)}
	var err error
	if j.lock, err = lockDir(dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, errors.Join(err, j.lock.Close())
	}
	j.folder = layer(root)
	j.disk = fileDisk{j.folder}
	text, err := root.ReadFile(journalFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		err = j.open(text)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	if len(j.Entries()) == 0 { // note then begins a new file, since the header of this one may name another boot
		j.entries, j.began = nil, boot
	}
	return j, nil
}

// lockDir makes the folder and locks it. The holder of the lock may remove the folder,
// so that no lock file stays behind. If the folder was removed while lockDir waited, the
// lock keeps no other process out: lockDir then makes and locks a new folder.
func lockDir(dir string) (*os.File, error) {
	for {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			// Another process may have removed the folder between mkdir and MkdirAll's look at it.
			if info, statErr := os.Lstat(dir); errors.Is(err, fs.ErrExist) && (errors.Is(statErr, fs.ErrNotExist) || statErr == nil && info.IsDir()) {
				continue
			}
			return nil, err
		}
		f, err := os.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && sameFile(f, dir) {
			return f, nil
		}
		_ = f.Close() // the lock is the cause
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrBusy
		}
		if err != nil {
			return nil, err
		}
	}
}

// sameFile reports whether the open file is the one of that name.
func sameFile(f *os.File, name string) bool {
	held, err := f.Stat()
	named, nameErr := os.Stat(name)
	return err == nil && nameErr == nil && os.SameFile(held, named)
}

// open parses the file's text, and cuts off a last line that a crash left incomplete.
func (j *Journal) open(text []byte) error {
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	if err := j.parse(bytes.NewReader(whole)); err != nil {
		return fmt.Errorf("%s: %w", j.path, err)
	}
	if len(whole) < len(text) {
		f, err := j.folder.OpenFile(journalFile, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Truncate(int64(len(whole))), f.Close())
	}
	return nil
}

// HasJournal reports whether the folder holds a journal, without opening it.
func HasJournal(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, journalFile))
	return err == nil && info.Size() > 0
}

// Close lets other processes open the journal. It removes the folder if it is empty.
func (j *Journal) Close() error {
	_ = os.Remove(filepath.Dir(j.path)) // fails if the folder is not empty
	return errors.Join(j.folder.Close(), j.lock.Close())
}

// Entries returns the changes that are in effect, oldest first.
func (j *Journal) Entries() []Entry {
	var list []Entry
	for _, e := range j.entries {
		if e.Ended == "" {
			list = append(list, *e)
		}
	}
	return list
}

// Mark returns the current point in the journal, for Revert.
func (j *Journal) Mark() int { return len(j.entries) }

// Trial is the setting's name of what diagnose tries. It is there for seconds, unless what holds
// it is killed.
const Trial = "diagnose"

// MarkOf returns the point in the journal after which there are changes of that setting alone,
// for Revert: those of a trial that nobody took back.
func (j *Journal) MarkOf(setting string) int {
	n := len(j.entries)
	for n > 0 && j.entries[n-1].Setting == setting {
		n--
	}
	return n
}

// rebooted reports whether the machine was restarted since the entries were made.
func (j *Journal) rebooted() bool { return j.began != j.boot }

// parse reads complete lines.
func (j *Journal) parse(r io.Reader) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for number := 1; s.Scan(); number++ {
		var l line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if err := j.take(l, number == 1); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	return s.Err()
}

// take adds a line to the entries in memory.
func (j *Journal) take(l line, first bool) error {
	if first {
		if l.Schema != Schema {
			return fmt.Errorf("schema %q; this version reads %s", l.Schema, Schema)
		}
		j.began = l.Boot
		return nil
	}
	if l.Step == "intent" {
		if l.Change == nil || l.N != len(j.entries) {
			return errors.New("an intent out of order")
		}
		entry := *l.Change
		j.entries = append(j.entries, &entry)
		return nil
	}
	if l.N < 0 || l.N >= len(j.entries) {
		return fmt.Errorf("no entry %d", l.N)
	}
	switch l.Step {
	case "done":
		j.entries[l.N].Done, j.entries[l.N].Read = true, l.Read
	case "ended":
		j.entries[l.N].Ended = l.How
	default:
		return fmt.Errorf("unknown step %q", l.Step)
	}
	return nil
}

// note writes a step to disk and then takes it.
func (j *Journal) note(l line) error {
	if len(j.entries) == 0 {
		head, err := json.Marshal(line{Schema: Schema, Boot: j.boot})
		if err != nil {
			return err
		}
		if err := j.begin(); err != nil {
			return err
		}
		if err := j.disk.Append(append(head, '\n')); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		j.began = j.boot
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if err := j.disk.Append(append(text, '\n')); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return j.take(l, false)
}

// begin removes an old journal that has no change in effect.
func (j *Journal) begin() error {
	err := j.folder.Remove(journalFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// end removes the journal if every entry has ended.
func (j *Journal) end() error {
	if len(j.Entries()) > 0 {
		return nil
	}
	j.entries, j.began = nil, j.boot
	if err := j.begin(); err != nil {
		return err
	}
	return atomicfile.Sync(j.folder, ".")
}

// fileDisk appends to the file and syncs it.
type fileDisk struct{ folder atomicfile.Folder }

func (d fileDisk) Append(line []byte) error {
	f, err := d.folder.OpenFile(journalFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	size := info.Size()
	_, err = f.Write(line)
	if err == nil {
		err = f.Sync()
	}
	if err != nil { // on a full disk half a line may be written: remove it, so that the next line begins a new one
		err = errors.Join(err, f.Truncate(size))
	}
	err = errors.Join(err, f.Close())
	if err == nil && size == 0 {
		err = atomicfile.Sync(d.folder, ".")
	}
	return err
}
