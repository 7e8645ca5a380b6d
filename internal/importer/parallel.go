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

// parseAll reads and parses the files. What parse returns beside an error counts, too; the
// error becomes a fault. The error is the context's.
func parseAll[T any](ctx context.Context, src *source, names []string, parse func(name string, data []byte) (T, error)) ([]T, error) {
	parsed := make([]T, len(names))
	err := parallel(ctx, len(names), func(i int) {
		data := src.read(names[i])
		if data == nil {
			return
		}
		v, err := parse(names[i], data)
		if err != nil {
			fault(src, names[i], err)
		}
		parsed[i] = v
	})
	return parsed, err
}

// walk returns the paths of all files below dir, at most depth folders deep.
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

// fault records an error of a parser, with its line.
func fault(src *source, file string, err error) {
	var at *lineError
	if errors.As(err, &at) {
		src.faultf(file, at.line, "%v", at.err)
		return
	}
	src.faultf(file, 0, "%v", err)
}
