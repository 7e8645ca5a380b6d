package importer

import (
	"bytes"
	"cmp"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// This file finds the configurations, runs and files of a result tree.

// config is one configuration's folder.
type config struct {
	name, id string
	runs     map[int]*run2024
	summary  map[int]values // of results.prom, by run
}

// run2024 is one run of a configuration.
type run2024 struct {
	config *config
	round  int
	dir    string
	files  map[string]bool
	all    values            // of all.results
	kernel string            // release
	mtus   map[string]int    // of the pods' interfaces
	policy map[string]string // pass or fail, by direction
}

// findConfigs finds the configurations and their runs.
func findConfigs(src *source) []*config {
	var configs []*config
	folders, _ := src.list(".")
	taken := map[string]string{}
	for _, name := range folders {
		c := &config{name: name, id: contenderID(clean(name)), runs: map[int]*run2024{}}
		runs, files := src.list(name)
		for _, run := range runs {
			dir := path.Join(name, run)
			n, err := strconv.Atoi(run)
			if err != nil || n < 1 || n > 10_000 || strconv.Itoa(n) != run {
				src.faultf(dir, 0, "the folder is no run: its name is no number from 1; it is not read")
				continue
			}
			folders, files := src.list(dir)
			for _, f := range folders {
				src.faultf(path.Join(dir, f), 0, "a folder where files are expected; it is not read")
			}
			r := &run2024{config: c, round: n, dir: dir, files: map[string]bool{}}
			for _, f := range files {
				if r.files[f] = knownFile(f); !r.files[f] {
					src.faultf(path.Join(dir, f), 0, "no file of the study; it is not read")
				}
			}
			c.runs[n] = r
		}
		if len(c.runs) == 0 {
			src.faultf(name, 0, "the folder holds no run; it is not read")
			continue
		}
		if first, again := taken[c.id]; again {
			src.faultf(name, 0, "the same contender as %s, %s; it is not read", first, c.id)
			continue
		}
		taken[c.id] = name
		if slices.Contains(files, "results.prom") {
			file := path.Join(name, "results.prom")
			summary, wrong := parseSummary(bytes.NewReader(src.read(file)), name)
			complain(src, file, wrong)
			c.summary = summary
		}
		configs = append(configs, c)
	}
	return configs
}

var infoFiles = []string{"info-client.uname", "info-server.uname", "info-client.interfaces", "info-server.interfaces", "info-netpol", "all.results"}

func knownFile(name string) bool {
	if slices.Contains(infoFiles, name) {
		return true
	}
	return slices.ContainsFunc(steps2024, func(s step2024) bool { return ofStep(name, s.ID) })
}

func ofStep(name, step string) bool {
	rest, ok := strings.CutPrefix(name, step)
	if !ok {
		return false
	}
	for _, side := range sideNames {
		if kind, ok := strings.CutPrefix(rest, "-"+side+"."); ok {
			return slices.Contains([]string{"cmd", "stdout", "stderr", "prom"}, kind)
		}
	}
	return rest == ".results"
}

func complain(src *source, file string, wrong []complaint) {
	for _, w := range wrong {
		src.faultf(file, w.line, "%s", w.text)
	}
}

func runOf(configs []*config, s *sample) *run2024 {
	i := slices.IndexFunc(configs, func(c *config) bool { return c.id == s.Contender })
	return configs[i].runs[s.Round]
}

// has says that the run has a file of the step.
func (r *run2024) has(step string) bool {
	for f, known := range r.files {
		if known && ofStep(f, step) {
			return true
		}
	}
	return false
}

var commandFlag = regexp.MustCompile(`-l id=(\S+) -l run=(\S+) -i (\S+)`)

// checkCommands compares what the commands say with where they lie.
func (r *run2024) checkCommands(src *source, step step2024) {
	for _, side := range sideNames {
		name := step.ID + "-" + side + ".cmd"
		if !r.files[name] {
			continue
		}
		file := path.Join(r.dir, name)
		m := commandFlag.FindSubmatch(src.read(file))
		if m == nil {
			src.faultf(file, 0, "no command of the study (statexec … -l id=… -l run=… -i …)")
			continue
		}
		for i, want := range []string{r.config.name, strconv.Itoa(r.round), step.ID} {
			if got := string(m[i+1]); got != want {
				src.faultf(file, 1, "it says %q where %q is expected: the file may belong elsewhere", got, want)
			}
		}
	}
}

// noteMissingRecordings says once how much of statexec's files is not there.
func noteMissingRecordings(src *source, runs []*run2024) {
	asked, missing, example := 0, 0, ""
	for _, r := range runs {
		for _, step := range steps2024 {
			for _, side := range sideNames {
				if name := step.ID + "-" + side; r.files[name+".cmd"] {
					asked++
					if !r.files[name+".prom"] {
						missing++
						example = cmp.Or(example, path.Join(r.dir, name+".prom"))
					}
				}
			}
		}
	}
	if missing > 0 {
		src.faultf("*.prom", 0, "%d of %d recordings of statexec are missing (%s, …): of CPU time only user and system are known there, so softirq, where a pod network does most of its work, is not, and CPU by traffic is a lower bound", missing, asked, example)
	}
}
