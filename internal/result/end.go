package result

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// End is the time at which a run ended, and the digests of its files at that time.
type End struct {
	Time time.Time `json:"time"`
	// Digests are SHA-256 in hexadecimal, by path: of samples.jsonl, and for every raw folder
	// that holds files, of the lines that `sha256sum *` prints in the folder. That of run.json
	// is of its object without the key "end", compact and with sorted keys.
	Digests map[string]string `json:"digests"`
}

// End writes into run.json that the run ended at that time, and the digests of its files.
// Resume removes them, and they are written again when the run ends again. Errors:
// ErrNoSpace.
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
	if digests[runFile], err = runDigest(s.root); err != nil {
		return fmt.Errorf("digests of %s: %w", s.dir, err)
	}
	run.End = &End{Time: at.UTC(), Digests: digests}
	return s.writeRun(run)
}

func (s *Store) writeRun(run *Run) error {
	return replace(s.files, runFile, func(w io.Writer) error { return encodeRun(w, run) })
}

// ListChanges lists the changes in dir since the run ended: files and raw folders that are
// missing, differ or are new. ended is false if run.json has no End to compare with.
// Errors: as Load.
func ListChanges(dir string) (changed []string, ended bool, err error) {
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
	if run.End.Digests[runFile] != "" { // earlier versions wrote none
		if now[runFile], err = runDigest(root); err != nil {
			return nil, true, fmt.Errorf("%s: %w", dir, err)
		}
	}
	all := maps.Clone(run.End.Digests)
	maps.Copy(all, now)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		switch before, after := run.End.Digests[name], now[name]; {
		case after == "":
			changed = append(changed, file+" is missing")
		case before == "":
			changed = append(changed, file+" came after the end of the run")
		case before != after:
			changed = append(changed, file+" was changed after the end of the run")
		}
	}
	return changed, true, nil
}

// runDigest computes the digest of run.json. It goes by the file's text and not by Run, so
// that keys of other versions count.
func runDigest(root *os.Root) (string, error) {
	f, err := OpenFile(root, runFile)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := readAll(f, maxRunFile)
	if err != nil {
		return "", err
	}
	object := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &object); err != nil {
		return "", err
	}
	delete(object, "end")
	compact, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(compact)), nil
}

// digestsOf computes End.Digests, but for that of run.json.
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
	for folder, sums := range lines { // WalkDir has visited the files in the order of their names
		digests[folder] = fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(sums, ""))))
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
