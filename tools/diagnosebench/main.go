// Command diagnosebench makes the confusion matrix of docs/diagnose.md: it plants the
// faults of corpus/lab one after the other, and none in sound contenders, runs
// `cnibench diagnose` and holds the answer against what was planted.
//
//	go run ./tools/diagnosebench [-program bin/cnibench] [-runs 1] [-only NAME,…] [-sound a,b] [-keep DIR]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
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
	folder := flag.String("corpus", "corpus/lab", "folder of the plants")
	flag.Parse()
	if err := bench(*program, *folder, *runs, split(*only), split(*sound), *keep); err != nil {
		fmt.Fprintln(os.Stderr, "diagnosebench:", err)
		os.Exit(1)
	}
}

func split(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

func bench(program, folder string, runs int, only, sound []string, keep string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return err
	}
	slices.Sort(files)
	fmt.Println("| planted | contender | first named | state | node | device | direction | first right | place right | others | s |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|")
	right, placed, all, falsely := 0, 0, 0, 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		p, err := run.ReadPlanted(file)
		if err != nil {
			return err
		}
		for k := range runs {
			v, took, err := ask(program, p.Contender, file, p.Flags, keepIn(keep, name, k))
			if err != nil {
				fmt.Printf("| %s | %s | %v |\n", name, p.Contender, err)
				all++
				continue
			}
			first := firstOf(v)
			ok, place := p.Expected.Is(first)
			planted := []string{p.Expected.ID}
			for _, e := range p.Also { // two at once: both are named, and any may be first
				planted = append(planted, e.ID)
				is, there := e.Is(first)
				ok, place = ok || is, place || there
				ok = ok && slices.ContainsFunc(v.Causes, func(x diagnose.Claim) bool { _, there := e.Is(x); return there })
			}
			if len(p.Also) > 0 {
				ok = ok && slices.ContainsFunc(v.Causes, func(x diagnose.Claim) bool { _, there := p.Expected.Is(x); return there })
			}
			for _, x := range v.Causes {
				if x.State == diagnose.Proven && !slices.Contains(planted, x.ID) {
					falsely++
				}
			}
			all++
			if ok {
				right++
			}
			if place {
				placed++
			}
			row(name, p.Contender, v, yes(ok), yes(place), took)
		}
	}
	usual, asked := 0, 0
	for _, id := range sound {
		for k := range runs {
			v, took, err := ask(program, id, "", nil, keepIn(keep, "sound-"+id, k))
			asked++
			if err != nil {
				fmt.Printf("| nothing | %s | %v |\n", id, err)
				continue
			}
			ok := v.Verdict == diagnose.Usual
			if ok {
				usual++
			}
			for _, x := range v.Causes {
				if x.State == diagnose.Proven {
					falsely++
				}
			}
			row("nothing", id, v, yes(ok), "", took)
		}
	}
	fmt.Printf("\nplanted cause first: %d of %d; its place right: %d of %d; another cause named as proven: %d; sound networks with nothing but usual: %d of %d\n",
		right, all, placed, all, falsely, usual, asked)
	return nil
}

func row(name, contender string, v *diagnose.Verdict, ok, place string, took time.Duration) {
	first := firstOf(v)
	var others []string
	for i, x := range v.Causes {
		if i > 0 {
			others = append(others, x.ID)
		}
	}
	fmt.Printf("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %.0f |\n", name, contender, first.ID, first.State, first.Node, first.Device, first.Direction, ok, place,
		strings.Join(others, ", "), took.Seconds())
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

func keepIn(folder, name string, k int) string {
	if folder == "" {
		return ""
	}
	return filepath.Join(folder, fmt.Sprintf("%s-%d.json", name, k+1))
}

// ask runs diagnose once in the lab.
func ask(program, contender, plant string, flags []string, keep string) (*diagnose.Verdict, time.Duration, error) {
	argv := []string{program, "diagnose", "--arena", run.Lab, "--contender", contender, "--json"}
	if plant != "" {
		argv = append(argv, "--plant", plant)
	}
	if keep != "" {
		argv = append(argv, "--save", keep)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var out, messages bytes.Buffer
	begin := time.Now()
	process, err := host.Local{}.Start(ctx, host.Command{Argv: append(argv, flags...), Stdout: &out, Stderr: &messages})
	if err != nil {
		return nil, 0, err
	}
	ended := process.Wait() // exit code 4 is a verdict, too
	v := &diagnose.Verdict{}
	if err := json.Unmarshal(out.Bytes(), v); err != nil {
		lines := strings.Split(strings.TrimSpace(messages.String()), "\n")
		return nil, 0, errors.Join(fmt.Errorf("no verdict: %s", lines[len(lines)-1]), ended)
	}
	return v, time.Since(begin), nil
}
