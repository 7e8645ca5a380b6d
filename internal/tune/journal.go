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

	"github.com/cnibench/cnibench/internal/disk"
)

// Journal is the old values of what was applied, on the disk before anything
// is changed: a line of JSON for every step, each synced. What a crash cuts
// off at its end was not carried out. Applying again adds to it; reverting
// goes through it backwards and removes it.
type Journal struct {
	entries []*Entry
	boot    string // of the machine now
	began   string // the boot that the journal was begun in
	disk    appender
	folder  disk.Folder
	path    string
	lock    *os.File
}

// Entry is one change of the journal.
type Entry struct {
	Setting string `json:"setting"`
	Place
	From    string    `json:"from"` // before the change
	To      string    `json:"to"`   // what was to be set
	Done    bool      `json:"-"`    // it was set and read back; else a crash may have come between
	Read    string    `json:"-"`    // what the place said afterwards, where Done
	Ended   string    `json:"-"`    // how it was taken back, "" while it holds: restored, untouched, gone, rebooted
	Written time.Time `json:"written"`
	// NetNS is the network namespace whose value it is; "" for the whole
	// machine's.
	NetNS string `json:"netns,omitempty"`
}

// Schema names the version of the journal's lines.
const Schema = "cnibench/tune-journal/1"

// line is a step as the journal holds it.
type line struct {
	Schema string `json:"schema,omitempty"` // of the first line only
	Boot   string `json:"boot,omitempty"`   // of the first line only
	Step   string `json:"step,omitempty"`   // intent, done, ended
	N      int    `json:"n"`                // the entry, from 0
	Change *Entry `json:"change,omitempty"` // of an intent
	Read   string `json:"read,omitempty"`   // of a done
	How    string `json:"how,omitempty"`    // of an ended
}

// appender keeps the journal's lines; tests break it.
type appender interface {
	// Append writes the line and returns when it is on the disk.
	Append(line []byte) error
}

// journalFile is its name below the state folder.
const journalFile = "tune.journal"

// StateDir is where cnibench keeps what outlives a run: /var/lib/cnibench for
// root, else the user's own state folder (XDG base directories).
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

// ErrBusy says that another cnibench has the journal open.
var ErrBusy = errors.New("another cnibench is tuning this machine; wait for it to end")

// OpenJournal reads the journal in the folder, which need not exist. boot is
// the machine's boot id. Close it. Errors: ErrBusy; a journal that is damaged
// before its end, which is left as it is.
func OpenJournal(dir, boot string) (*Journal, error) { return openJournal(dir, boot, disk.Root) }

func openJournal(dir, boot string, layer func(*os.Root) disk.Folder) (*Journal, error) {
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
	if len(j.Entries()) == 0 { // so that note begins a new file: this one's header may name another boot
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

// sameFile says that the open file is the one of that name.
func sameFile(f *os.File, name string) bool {
	held, err := f.Stat()
	named, nameErr := os.Stat(name)
	return err == nil && nameErr == nil && os.SameFile(held, named)
}

// open takes over what the file holds, and cuts off a line that a crash left
// unfinished.
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

// HasJournal says that the folder holds one, without opening it.
func HasJournal(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, journalFile))
	return err == nil && info.Size() > 0
}

// Close lets others open the journal. A folder that holds nothing any more is
// removed.
func (j *Journal) Close() error {
	_ = os.Remove(filepath.Dir(j.path)) // fails while something is in it
	return errors.Join(j.folder.Close(), j.lock.Close())
}

// Entries are the changes that hold, oldest first.
func (j *Journal) Entries() []Entry {
	var list []Entry
	for _, e := range j.entries {
		if e.Ended == "" {
			list = append(list, *e)
		}
	}
	return list
}

// Mark is a point in the journal to revert to.
func (j *Journal) Mark() int { return len(j.entries) }

// rebooted says that the machine was started anew since the entries were made.
func (j *Journal) rebooted() bool { return j.began != j.boot }

// parse reads whole lines.
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

// note writes a step down and then takes it over.
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

// begin removes what a crash left of a journal in which nothing holds.
func (j *Journal) begin() error {
	err := j.folder.Remove(journalFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// end removes the journal once every entry has ended.
func (j *Journal) end() error {
	if len(j.Entries()) > 0 {
		return nil
	}
	j.entries, j.began = nil, j.boot
	if err := j.begin(); err != nil {
		return err
	}
	return disk.Sync(j.folder, ".")
}

// fileDisk appends to the file and syncs it.
type fileDisk struct{ folder disk.Folder }

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
	if err != nil { // a full disk takes half a line, which the next would be glued to
		err = errors.Join(err, f.Truncate(size))
	}
	err = errors.Join(err, f.Close())
	if err == nil && size == 0 {
		err = disk.Sync(d.folder, ".")
	}
	return err
}
