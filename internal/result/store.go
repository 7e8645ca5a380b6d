package result

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/cnibench/cnibench/internal/atomicfile"
)

// Kinds of error that the store returns.
var (
	// ErrExists: the output folder holds something already.
	ErrExists = errors.New("already exists")
	// ErrLocked: another process writes to the run.
	ErrLocked = errors.New("in use by another process")
	// ErrCorrupt: the samples file has a bad line before its end.
	ErrCorrupt = errors.New("corrupt samples file")
	// ErrSealed: the run has this sample already.
	ErrSealed = errors.New("sealed already")
	// ErrNoSpace: the disk is full; such an error is syscall.ENOSPC or
	// EDQUOT too. What was sealed before stays readable.
	ErrNoSpace = errors.New("no space left for the run directory")
)

// Store writes a run directory. Its methods can be called from several
// goroutines. One process at a time has a run open for writing.
type Store struct {
	dir     string
	root    *os.Root          // the run directory, for reading
	files   atomicfile.Folder // the run directory, for writing
	folder  *os.File          // the run directory, opened to hold the lock
	samples atomicfile.File   // locked, too
	mu      sync.Mutex
	sealed  map[Key]bool
	made    map[Key]bool // raw folders that this process has made
	end     int64        // offset of the end of the last sealed line
	broken  error        // why nothing can be sealed any more
	tool    string       // Sample.Tool of new samples; empty if this program also began the run
}

// Create starts a run in dir, which must not exist or be empty. Errors:
// ErrExists, ErrNoSpace.
func Create(dir string, run *Run) (*Store, error) { return create(dir, run, atomicfile.Root) }

// create makes run.json first. If the process dies at any point, the run in the folder can
// be resumed, or a new run can be started there.
func create(dir string, run *Run, layer func(*os.Root) atomicfile.Folder) (_ *Store, err error) {
	made, err := freshFolder(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	s := &Store{dir: dir, root: root, files: layer(root), sealed: map[Key]bool{}, made: map[Key]bool{}}
	begun := false
	defer func() {
		if err == nil {
			return
		}
		if begun {
			_ = s.files.Remove(samplesFile)
			_ = s.files.Remove(runFile)
		}
		_ = s.Close()
		if made {
			os.Remove(dir)
		}
	}()
	if s.folder, err = lockFolder(dir); err != nil {
		return nil, err
	}
	// Another process may have started a run since freshFolder looked.
	if empty, err := IsFresh(dir); err != nil || !empty {
		return nil, cmp.Or(err, existsError(dir))
	}
	begun = true
	if err := replace(s.files, runFile, func(w io.Writer) error { return encodeRun(w, run) }); err != nil {
		return nil, err
	}
	if err := s.openSamples(); err != nil {
		return nil, err
	}
	return s, nil
}

// openSamples opens and locks the file of the samples. It makes the file if it is missing.
func (s *Store) openSamples() (err error) {
	if s.samples, err = s.files.OpenFile(samplesFile, os.O_RDWR|os.O_CREATE|syscall.O_NONBLOCK, 0o644); err != nil {
		return spaceError(fmt.Errorf("run directory: %w", err))
	}
	if err := lock(s.samples, s.dir); err != nil {
		return err
	}
	return spaceError(atomicfile.Sync(s.files, "."))
}

// freshFolder makes dir, unless dir exists and is empty. made says whether it made dir.
func freshFolder(dir string) (made bool, err error) {
	if err := os.MkdirAll(filepath.Dir(filepath.Clean(dir)), 0o755); err != nil {
		return false, spaceError(fmt.Errorf("run directory: %w", err))
	}
	err = os.Mkdir(dir, 0o755)
	if err == nil {
		return true, spaceError(atomicfile.SyncPath(filepath.Dir(filepath.Clean(dir))))
	}
	if !errors.Is(err, fs.ErrExist) {
		return false, spaceError(fmt.Errorf("run directory: %w", err))
	}
	if empty, err := IsFresh(dir); err != nil || !empty {
		return false, cmp.Or(err, existsError(dir))
	}
	return false, nil
}

// IsFresh says whether a run can begin in the folder: it is empty, as a run that was killed
// before its first sample leaves it. The file that an interrupted Create leaves does not count.
func IsFresh(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("run directory: %w", err)
	}
	return !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != runFile+atomicfile.Pending }), nil
}

func existsError(dir string) error {
	return fmt.Errorf("output folder %s %w; choose another, or go on with the run in it with: --resume %s", dir, ErrExists, dir)
}

// encodeRun writes run.json; lists that are nil become empty ones, so that
// readers in other languages find no null.
func encodeRun(w io.Writer, run *Run) error {
	r := *run
	r.Schema = RunSchema
	r.Contenders = notNil(r.Contenders)
	r.Unsupported = notNil(r.Unsupported)
	r.Plan.Contenders = notNil(r.Plan.Contenders)
	r.Plan.Steps = notNil(r.Plan.Steps)
	if r.Environment == nil {
		r.Environment = Environment{}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Resume opens the run in dir for more samples, and returns the samples so far. If the
// last line was half written when the run was killed, Resume moves the line to
// samples.torn, and the record has a fault for it. Errors: ErrNoRun, ErrVersion,
// ErrLocked, ErrCorrupt, ErrNoSpace.
func Resume(dir string) (*Store, *Record, error) { return resume(dir, atomicfile.Root) }

func resume(dir string, layer func(*os.Root) atomicfile.Folder) (_ *Store, _ *Record, err error) {
	root, err := openRun(dir)
	if err != nil {
		return nil, nil, err
	}
	s := &Store{dir: dir, root: root, files: layer(root), made: map[Key]bool{}}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	if _, err := loadRun(root, dir); err != nil {
		return nil, nil, err
	}
	if s.folder, err = lockFolder(dir); err != nil {
		return nil, nil, err
	}
	if err := s.openSamples(); err != nil {
		return nil, nil, err
	}
	record, found, err := load(root, dir)
	if err != nil {
		return nil, nil, err
	}
	if len(found.bad) > 0 && found.badInside {
		return nil, nil, fmt.Errorf("%s:%d: %w: %s; put the line right or take it out, then resume",
			filepath.Join(dir, samplesFile), found.bad[0].Line, ErrCorrupt, found.bad[0].Text)
	}
	if err := s.mend(found); err != nil {
		return nil, nil, spaceError(fmt.Errorf("%s: %w", dir, err))
	}
	s.sealed = record.SealedKeys()
	if record.Run.End != nil { // the run has not ended any more
		record.Run.End = nil
		if err := s.writeRun(&record.Run); err != nil {
			return nil, nil, err
		}
	}
	return s, record, nil
}

// mend makes the samples file end with a whole line. Bytes after the last good line are
// moved to samples.torn.
func (s *Store) mend(found *parsed) error {
	s.end = found.end
	if found.cut {
		if _, err := s.samples.WriteAt([]byte("\n"), s.end); err != nil {
			return err
		}
		s.end++
		return s.samples.Sync()
	}
	if len(found.bad) == 0 {
		return nil
	}
	info, err := s.samples.Stat()
	if err != nil {
		return err
	}
	torn := make([]byte, min(info.Size()-s.end, maxLine))
	if _, err := s.samples.ReadAt(torn, s.end); err != nil {
		return err
	}
	aside, err := s.files.OpenFile(tornFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return err
	}
	_, err = aside.Write(append(torn, '\n'))
	if err := errors.Join(err, aside.Sync(), aside.Close(), atomicfile.Sync(s.files, ".")); err != nil {
		return err
	}
	if err := s.samples.Truncate(s.end); err != nil {
		return err
	}
	return s.samples.Sync()
}

// SetTool tells the store which program takes the samples from now on, and which program
// began the run. If the two differ, each new sample contains the name of the first.
func (s *Store) SetTool(tool, began Tool) {
	if tool != began {
		s.tool = tool.String()
	}
}

// Dir returns the path of the run directory as the caller gave it.
func (s *Store) Dir() string { return s.dir }

// SealedKeys returns the keys of the samples that the run has.
func (s *Store) SealedKeys() map[Key]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.sealed)
}

// WriteFile makes or replaces a file in the run directory. If write fails, nothing
// changes. Errors: ErrNoSpace.
func (s *Store) WriteFile(name string, write func(io.Writer) error) error {
	return writeFile(s.files, name, write)
}

// WriteFile does the same for a run that is finished, or that another process
// writes.
func WriteFile(dir, name string, write func(io.Writer) error) error {
	root, err := openRun(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return writeFile(atomicfile.Root(root), name, write)
}

func writeFile(f atomicfile.Folder, name string, write func(io.Writer) error) error {
	if name != filepath.Base(name) || !filepath.IsLocal(name) || name == runFile || name == samplesFile || name == tornFile || name == faultsFile || name == rawFolder {
		return fmt.Errorf("write %q into the run directory: not a name for a report", name)
	}
	return replace(f, name, write)
}

// Close unlocks the run and closes its files. Sealed samples are on the disk already.
func (s *Store) Close() error {
	err := s.root.Close()
	if s.samples != nil {
		err = errors.Join(err, s.samples.Close())
	}
	if s.folder != nil {
		err = errors.Join(err, s.folder.Close())
	}
	return err
}

// Lock keeps other processes from writing to the run that is or will be in dir, until
// unlock is called or this process dies. It is for a run that a guest writes: the guest's
// file system does not know the locks of this machine. Errors: ErrLocked.
func Lock(dir string) (unlock func() error, err error) {
	folder, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	return folder.Close, nil
}

// lockFolder opens and locks the folder of a run.
func lockFolder(dir string) (*os.File, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	if err := lock(folder, dir); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

// lock keeps other processes off the file until it is closed, or until this process dies.
func lock(f atomicfile.File, dir string) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("run directory %s is %w; wait for that run to end", dir, ErrLocked)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}
