package record

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/klauspost/compress/zstd"

	"github.com/cnibench/cnibench/internal/atomicfile"
	"github.com/cnibench/cnibench/internal/sysmon"
)

// DefaultFile is the default name of the recording.
const DefaultFile = "cnibench-record.om.zst"

// output is the file of a recording. It consists of parts that can be read independently
// (in a compressed file they are zstd frames), so that a full disk loses only the last
// parts.
type output struct {
	path  string
	file  file
	size  int64
	zip   *zstd.Encoder // nil: the file is plain text
	parts []part
	text  int  // bytes since the last part, before compression
	done  int  // families written; the snapshots' times count as the first
	first int  // families of the summary, which get a part of their own
	fresh bool // create made the file
	wrote bool
	// target is the folder and name of a regular file. The new recording is complete
	// before it replaces an old one.
	target struct {
		folder atomicfile.Folder
		name   string
	}
}

// part is a place where the file can be cut.
type part struct {
	end      int64 // in the file
	families int   // before it
}

// partText is the least size of a compressed part in bytes of text, because smaller parts
// compress badly.
const partText = 64 << 10

// file is what output needs of an *os.File.
type file interface {
	io.WriteCloser
	Truncate(size int64) error
	Seek(offset int64, whence int) (int64, error)
	Sync() error
}

func compressedName(path string) bool { return filepath.Ext(path) == ".zst" }

// create opens the file before anything is recorded, so that errors show at once. An old
// recording in the file stays until the new one is written.
func create(path string, plain bool) (*output, error) {
	f, fresh, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("the recording's file: %w", err)
	}
	o := &output{path: path, file: f, fresh: fresh}
	if !isRegular(f) {
		o.file = stream{f}
	} else if err := o.openTarget(); err != nil {
		return nil, errors.Join(fmt.Errorf("the recording's file: %w", err), o.close())
	}
	if !plain && !slices.Contains([]string{".prom", ".om", ".txt"}, filepath.Ext(path)) {
		// An hour's text is 100 MB of very similar lines, for which a small window is enough.
		o.zip, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	}
	return o, err
}

// open opens a file that is written later. It does not wait for the reader of a named
// pipe: without a reader it returns an error. fresh says whether open made the file.
func open(path string) (f *os.File, fresh bool, err error) {
	_, before := os.Lstat(path)
	f, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|syscall.O_NONBLOCK, 0o644)
	if info, statErr := os.Stat(path); statErr == nil && info.Mode()&os.ModeNamedPipe != 0 && errors.Is(err, syscall.ENXIO) {
		err = fmt.Errorf("nobody reads the named pipe %s; start its reader first: %w", path, err)
	}
	return f, before != nil, err
}

// openTarget sets o.target. If the file is a symbolic link, the target is the file to
// which the link leads.
func (o *output) openTarget() error {
	path, err := filepath.EvalSymlinks(o.path)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	o.target.folder, o.target.name = atomicfile.Root(root), filepath.Base(path)
	return nil
}

// sameFile says whether both names lead to the same regular file.
func sameFile(a, b string) bool {
	info, err := os.Stat(a)
	if err != nil || b == "" {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && info.Mode().IsRegular() && os.SameFile(info, other)
}

// close closes the file, and removes it if create made it and nothing was written.
func (o *output) close() error {
	err := o.file.Close()
	if o.fresh && !o.wrote {
		err = errors.Join(err, remove(o.path))
	}
	if o.target.folder != nil {
		if o.wrote { // a file that has not replaced the target is incomplete
			if e := o.target.folder.Remove(o.target.name + atomicfile.Pending); !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
		err = errors.Join(err, o.target.folder.Close())
	}
	return err
}

// remove removes a file. It is no error if there is none: recording and summary may have
// the same name.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.text += len(p)
	if o.zip != nil {
		return o.zip.Write(p)
	}
	return o.file.Write(p)
}

// family is called after each family. It ends the part if the part is large enough.
func (o *output) family() error {
	o.done++
	if o.zip != nil && o.text < partText && o.done != 1+o.first {
		return nil
	}
	return o.part()
}

// endFrame ends the zstd frame of the current part.
func (o *output) endFrame() error {
	if o.zip == nil {
		return nil
	}
	return o.zip.Close()
}

func (o *output) part() (err error) {
	if err := o.endFrame(); err != nil {
		return err
	}
	if o.size, err = o.file.Seek(0, io.SeekCurrent); err != nil {
		return err
	}
	o.parts, o.text = append(o.parts, part{o.size, o.done}), 0
	if o.zip != nil {
		o.zip.Reset(o.file)
	}
	return nil
}

// write writes the recording with its summary. If the disk gets full, it keeps the parts
// that fit, as a file that can be read.
func (o *output) write(rec *sysmon.Recorder, s *Summary) error {
	head, summary := rec.Part(), s.families(rec.Part().Times)
	o.first = len(summary)
	if err := sysmon.Check(head); err != nil {
		return err // before anything replaces the old file
	}
	if err := o.begin(); err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	err := sysmon.StreamOpenMetrics(o, head, func(yield func(sysmon.Family) bool) {
		for _, f := range summary {
			if !yield(f) {
				return
			}
		}
		for _, name := range rec.Names() {
			if !yield(rec.Part(name).Families[0]) {
				return
			}
		}
	}, o.family)
	if err == nil {
		err = errors.Join(o.endFrame(), o.file.Sync()) // even these can find the disk full
	}
	if err == nil {
		return o.replaceTarget()
	}
	kept, cutErr := o.cut()
	if cutErr != nil {
		return fmt.Errorf("%s could not be written: %w", o.path, errors.Join(err, cutErr))
	}
	advice := ""
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		advice = "; make room and record again"
	}
	return fmt.Errorf("%s is incomplete: %w; the first %d of its %d metrics were kept and can be read%s",
		o.path, err, kept, len(summary)+len(rec.Names()), advice)
}

func (o *output) begin() error {
	o.wrote = true
	if o.target.folder != nil {
		info, err := o.file.(*os.File).Stat()
		if err != nil {
			return err
		}
		f, err := o.target.folder.OpenFile(o.target.name+atomicfile.Pending, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm())
		if err != nil {
			return err
		}
		if err := o.file.Close(); err != nil {
			return errors.Join(err, f.Close())
		}
		o.file = f
	}
	if o.zip != nil {
		o.zip.Reset(o.file)
	}
	return nil
}

// replaceTarget renames the written and synced file to the target's name.
func (o *output) replaceTarget() error {
	if o.target.folder == nil {
		return nil
	}
	return atomicfile.Commit(o.target.folder, o.target.name)
}

// cut truncates the file after the last part that leaves room on the disk for the line
// EndOpenMetrics. kept is the number of families before it.
func (o *output) cut() (kept int, err error) {
	err = errors.New("nothing of the recording was kept")
	for n := len(o.parts); n > 0; n-- {
		if err = o.file.Truncate(o.parts[n-1].end); err != nil {
			return 0, err
		}
		if _, err = o.file.Seek(o.parts[n-1].end, io.SeekStart); err != nil {
			return 0, err
		}
		if o.zip != nil {
			o.zip.Reset(o.file)
		}
		o.parts = o.parts[:n]
		if _, err = o.Write([]byte(sysmon.EndOpenMetrics)); err == nil {
			err = errors.Join(o.endFrame(), o.file.Sync())
		}
		if err == nil {
			return max(0, o.parts[n-1].families-1), o.replaceTarget()
		}
	}
	return 0, err
}

// stream is a pipe or a device, which cannot be truncated.
type stream struct{ *os.File }

func (stream) Truncate(int64) error           { return nil }
func (stream) Seek(int64, int) (int64, error) { return 0, nil }
func (stream) Sync() error                    { return nil }
