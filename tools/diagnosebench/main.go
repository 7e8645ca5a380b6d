// Command diagnosebench makes the confusion matrix of docs/diagnose.md: it plants the
// faults of corpus/lab one after the other, and none in sound contenders, runs
// `cnibench diagnose` and holds the answer against what was planted.
//
//	go run ./tools/diagnosebench [-program bin/cnibench] [-runs 1] [-only NAME,…] [-sound a,b] [-keep DIR]
//
// With -judge DIR nothing is measured: the cases that -keep left in DIR, or in folders of
// it, are judged again, so that the matrix is counted from files.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/diagnose"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/run"
)

func main() {
	program := flag.String("program", "bin/cnibench", "the cnibench to test")
	runs := flag.Int("runs", 1, "runs of each plant and of each sound contender")
	only := flag.String("only", "", "names of plants, comma-separated; none: all")
	sound := flag.String("sound", "", "sound contenders, comma-separated; none: no sound runs")
	keep := flag.String("keep", "", "folder for the cases")
	judge := flag.String("judge", "", "folder of kept cases to judge instead of measuring")
	folder := flag.String("corpus", "corpus/lab", "folder of the plants")
	flag.Parse()
	source := measureRuns(*program, *runs, *keep)
	if *judge != "" {
		source = judgeKept(*program, *judge)
	}
	if err := bench(source, *folder, split(*only), split(*sound)); err != nil {
		fmt.Fprintln(os.Stderr, "diagnosebench:", err)
		os.Exit(1)
	}
}

func split(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// runsOf gives an answer for each run of a plant, or of a sound contender, whose plant is "".
type runsOf func(name, contender, plant string, flags []string) iter.Seq[answer]

// answer is what one run said, or why it said nothing.
type answer struct {
	verdict *diagnose.Verdict
	took    time.Duration
	err     error
}

// measureRuns runs diagnose in the lab.
func measureRuns(program string, runs int, keep string) runsOf {
	return func(name, contender, plant string, flags []string) iter.Seq[answer] {
		return func(yield func(answer) bool) {
			for k := range runs {
				argv := []string{program, "diagnose", "--arena", run.Lab, "--contender", contender, "--json"}
				if plant != "" {
					argv = append(argv, "--plant", plant)
				}
				if keep != "" {
					argv = append(argv, "--save", filepath.Join(keep, fmt.Sprintf("%s-%d.json", name, k+1)))
				}
				if !yield(ask(append(argv, flags...))) {
					return
				}
			}
		}
	}
}

// judgeKept judges the kept cases of the folder and of its folders.
func judgeKept(program, folder string) runsOf {
	return func(name, _, _ string, _ []string) iter.Seq[answer] {
		return func(yield func(answer) bool) {
			for _, at := range []string{"", "*"} {
				files, _ := filepath.Glob(filepath.Join(folder, at, name+"-[0-9]*.json")) // the pattern is well-formed
				for _, file := range files {
					if !yield(ask([]string{program, "diagnose", file, "--json"})) {
						return
					}
				}
			}
		}
	}
}

func bench(source runsOf, folder string, only, sound []string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return err
	}
	slices.Sort(files)
	fmt.Println("| planted | contender | first named | state | node | device | direction | first right | place right | others | s |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|")
	right, placed, all, falsely, elsewhere := 0, 0, 0, 0, 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		p, err := run.ReadPlanted(file)
		if err != nil {
			return err
		}
		planted := append([]run.ExpectedClaim{p.Expected}, p.Also...)
		for a := range source(name, p.Contender, file, p.Flags) {
			all++
			if a.err != nil {
				fmt.Printf("| %s | %s | %v |\n", name, p.Contender, a.err)
				continue
			}
			first := firstOf(a.verdict)
			var ok, place bool
			for _, e := range planted { // of two at once any may be first
				is, there := e.Is(first)
				ok, place = ok || is, place || there
			}
			if len(planted) > 1 { // and all are named
				for _, e := range planted {
					ok = ok && slices.ContainsFunc(a.verdict.Causes, func(x diagnose.Claim) bool { _, there := e.Is(x); return there })
				}
			}
			proven := listProven(a.verdict)
			if slices.ContainsFunc(proven, func(x diagnose.Claim) bool { return !anyOf(planted, x, false) }) {
				falsely++
			}
			if slices.ContainsFunc(proven, func(x diagnose.Claim) bool { return anyOf(planted, x, false) && !anyOf(planted, x, true) }) {
				elsewhere++
			}
			right, placed = right+one(ok), placed+one(place)
			row(name, p.Contender, a, yes(ok), yes(place))
		}
	}
	usual, asked, unplanted := 0, 0, 0
	for _, id := range sound {
		for a := range source("sound-"+id, id, "", nil) {
			asked++
			if a.err != nil {
				fmt.Printf("| nothing | %s | %v |\n", id, a.err)
				continue
			}
			ok := a.verdict.Verdict == diagnose.Usual
			usual, unplanted = usual+one(ok), unplanted+one(len(listProven(a.verdict)) > 0)
			row("nothing", id, a, yes(ok), "")
		}
	}
	fmt.Printf("\nplanted cause first: %d of %d; its place right: %d of %d\n", right, all, placed, all)
	fmt.Printf("runs with another cause proven than planted: %d of %d; with the planted one proven at another place: %d\n", falsely, all, elsewhere)
	fmt.Printf("nothing planted: nothing but usual in %d of %d; a cause proven in %d\n", usual, asked, unplanted)
	return nil
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// listProven returns the claims that were proven.
func listProven(v *diagnose.Verdict) []diagnose.Claim {
	return slices.DeleteFunc(slices.Clone(v.Causes), func(x diagnose.Claim) bool { return x.State != diagnose.Proven })
}

// anyOf says that the claim is one of the planted causes, and if asked, at its place.
func anyOf(planted []run.ExpectedClaim, x diagnose.Claim, placed bool) bool {
	return slices.ContainsFunc(planted, func(e run.ExpectedClaim) bool {
		is, there := e.Is(x)
		return is && (there || !placed)
	})
}

func row(name, contender string, a answer, ok, place string) {
	v, first := a.verdict, firstOf(a.verdict)
	var others []string
	for i, x := range v.Causes {
		if i > 0 {
			others = append(others, x.ID)
		}
	}
	fmt.Printf("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %.0f |\n", name, contender, first.ID, first.State, first.Node, first.Device, first.Direction, ok, place,
		strings.Join(others, ", "), a.took.Seconds())
}

func firstOf(v *diagnose.Verdict) diagnose.Claim {
	if len(v.Causes) > 0 {
		return v.Causes[0]
	}
	return diagnose.Claim{ID: v.Verdict}
}

func yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}

// ask runs the command once.
func ask(argv []string) answer {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var out, messages bytes.Buffer
	begin := time.Now()
	process, err := host.Local{}.Start(ctx, host.Command{Argv: argv, Stdout: &out, Stderr: &messages})
	if err != nil {
		return answer{err: err}
	}
	ended := process.Wait() // exit code 4 is a verdict, too
	v := &diagnose.Verdict{}
	if err := json.Unmarshal(out.Bytes(), v); err != nil {
		lines := strings.Split(strings.TrimSpace(messages.String()), "\n")
		return answer{err: errors.Join(fmt.Errorf("no verdict: %s", lines[len(lines)-1]), ended)}
	}
	return answer{verdict: v, took: time.Since(begin)}
}
