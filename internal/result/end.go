package result

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// End is what run.json holds once the run has ended: what its files were then.
type End struct {
	Time time.Time `json:"time"`
	// Digests are SHA-256 in hexadecimal: of samples.jsonl, and of every raw folder that holds
	// files, of the lines that `sha256sum *` prints there.
	Digests map[string]string `json:"digests"`
}

// End notes in run.json that the run ended at that time, and the digests of its files. A run
// that is resumed loses the note until it ends again. Errors: ErrNoSpace.
func (s *Store) End(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	run, err := loadRun(s.root, s.dir)
	if err != nil {
		return err
	}
	digests, err := digestsOf(s.root)
	if err != nil {
		return fmt.Errorf("digests of %s: %w", s.dir, err)
	}
	run.End = &End{Time: at.UTC(), Digests: digests}
	return s.writeRun(run)
}

func (s *Store) writeRun(run *Run) error {
	return replace(s.files, runFile, func(w io.Writer) error { return encodeRun(w, run) })
}

// Changed lists what of the run in dir is not what it was when the run ended: files of the
// note that are missing or differ, and raw folders that came later. ended is false
// where the run has no such note. Errors: as Load.
func Changed(dir string) (changed []string, ended bool, err error) {
	root, err := openRun(dir)
	if err != nil {
		return nil, false, err
	}
	defer root.Close()
	run, err := loadRun(root, dir)
	if err != nil || run.End == nil {
		return nil, false, err
	}
	now, err := digestsOf(root)
	if err != nil {
		return nil, true, fmt.Errorf("%s: %w", dir, err)
	}
	all := maps.Clone(run.End.Digests)
	maps.Copy(all, now)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch was, is := run.End.Digests[name], now[name]; {
		case is == "":
			changed = append(changed, name+" is missing")
		case was == "":
			changed = append(changed, name+" came after the end of the run")
		case was != is:
			changed = append(changed, name+" was changed after the end of the run")
		}
	}
	return changed, true, nil
}

// digestsOf are those of End.
func digestsOf(root *os.Root) (map[string]string, error) {
	digests := map[string]string{}
	samples, err := fileDigest(root, samplesFile)
	if err != nil {
		return nil, err
	}
	digests[samplesFile] = samples
	lines := map[string][]string{} // by folder
	err = fs.WalkDir(root.FS(), rawFolder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		sum, err := fileDigest(root, name)
		lines[path.Dir(name)] = append(lines[path.Dir(name)], sum+"  "+path.Base(name)+"\n")
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for folder, of := range lines { // in the order of their names, as WalkDir goes
		digests[folder] = fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(of, ""))))
	}
	return digests, nil
}

func fileDigest(root *os.Root, name string) (string, error) {
	f, err := OpenFile(root, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}
