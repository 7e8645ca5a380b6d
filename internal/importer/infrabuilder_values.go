package importer

import (
	"bytes"
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
)

// This file reads the values that the study's script had taken from the tools'
// output: .results files, and the summaries that repeat them.

// summaryOf is what the summary files of the whole run and of the
// configuration say of the step, by file.
func (r *run2024) summaryOf(step step2024) []summary {
	var list []summary
	prefix := strings.ToUpper(step.ID) + "_"
	for _, s := range []summary{
		{path.Join(r.dir, "all.results"), r.all}, {path.Join(r.config.name, "results.prom"), r.config.summary[r.round]},
	} {
		own := values{}
		for key, v := range s.values {
			if strings.HasPrefix(key, prefix) {
				own[key] = v
			}
		}
		if len(own) > 0 {
			list = append(list, summary{s.file, own})
		}
	}
	return list
}

type summary struct {
	file   string
	values values
}

func differ(a, b float64) bool { return a < b*(1-1e-6) || a > b*(1+1e-6) }

// stepValues are the step's values from its .results file; what that lacks
// comes from all.results, then from results.prom.
func (r *run2024) stepValues(src *source, step step2024) values {
	vs := values{}
	own := path.Join(r.dir, step.ID+".results")
	if r.files[step.ID+".results"] {
		var wrong []complaint
		vs, wrong = parseKeyValues(bytes.NewReader(src.read(own)))
		complain(src, own, wrong)
	} else {
		src.faultf(own, 0, "missing")
	}
	for key, v := range vs {
		v.file = own
		vs[key] = v
	}
	unknown(src, own, vs)
	for _, other := range r.summaryOf(step) {
		added := values{}
		for _, key := range slices.Sorted(maps.Keys(other.values)) {
			v := other.values[key]
			first, has := vs[key]
			switch {
			case !has:
				v.file = other.file
				added[key] = v
				vs[key] = v
			case first.text != v.text:
				src.faultf(other.file, v.line, "%s of run %d is %q, and %q in %s, which counts", key, r.round, v.text, first.text, first.file)
			}
		}
		unknown(src, other.file, added)
	}
	return vs
}

// unknown names the keys that have no number, once for all that lack it for
// the same cause.
func unknown(src *source, file string, vs values) {
	keys := map[string][]string{}
	lines := map[string]int{}
	for _, key := range slices.SortedFunc(maps.Keys(vs), func(a, b string) int { return cmp.Compare(vs[a].line, vs[b].line) }) {
		if v := vs[key]; !v.known {
			if lines[v.why()] == 0 {
				lines[v.why()] = v.line
			}
			keys[v.why()] = append(keys[v.why()], key)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(keys)) {
		src.faultf(file, lines[why], "%s: %s", strings.Join(keys[why], ", "), why)
	}
}
