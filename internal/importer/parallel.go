package importer

import (
	"context"
	"errors"
	"path"
	"runtime"
	"sync"
	"sync/atomic"
)

// maxParsers is how many files are parsed at a time: each may take some hundred MiB.
const maxParsers = 4

// parallel calls do for 0 … n-1 on several CPUs. The error is the context's.
func parallel(ctx context.Context, n int, do func(i int)) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0), maxParsers) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}

// walk is every file below dir, at most depth folders deep, by name.
func walk(src *source, dir string, depth int) []string {
	folders, files := src.list(dir)
	for i := range files {
		files[i] = path.Join(dir, files[i])
	}
	for _, f := range folders {
		if depth == 0 {
			src.faultf(path.Join(dir, f), 0, "a folder too deep; it is not read")
			continue
		}
		files = append(files, walk(src, path.Join(dir, f), depth-1)...)
	}
	return files
}

// fault notes an error of a parser at its line.
func fault(src *source, file string, err error) {
	var at *lineError
	if errors.As(err, &at) {
		src.faultf(file, at.line, "%v", at.err)
		return
	}
	src.faultf(file, 0, "%v", err)
}
