package result

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Runs returns the run directories of a folder: the folder itself if it is one, then each
// folder directly below it that is one, in the order in which the runs were begun. (Earlier
// versions kept what another kernel ran in a folder of the run directory.) It returns the
// folder alone if it holds no run, so that Load says why.
func Runs(folder string) []string {
	var dirs []string
	begun := map[string]time.Time{}
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		dir := filepath.Join(folder, e.Name())
		if isRun(dir) {
			dirs, begun[dir] = append(dirs, dir), startOf(dir)
		}
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Or(begun[a].Compare(begun[b]), cmp.Compare(a, b)) })
	if isRun(folder) || len(dirs) == 0 {
		dirs = append([]string{folder}, dirs...)
	}
	return dirs
}

func isRun(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, runFile))
	return err == nil
}

// startOf returns when the run in dir was begun; zero if its file can't be read.
func startOf(dir string) time.Time {
	root, err := openRun(dir)
	if err != nil {
		return time.Time{}
	}
	defer root.Close()
	run, err := loadRun(root, dir)
	if err != nil {
		return time.Time{}
	}
	return run.Started
}
