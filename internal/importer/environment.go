package importer

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// info parses one small file of a run; ok says that it is there and sound.
func info[T any](src *source, r *run2024, name string, parse func(io.Reader) (T, error)) (v T, ok bool) {
	if !r.files[name] {
		return v, false
	}
	file := path.Join(r.dir, name)
	data := src.read(file)
	if data == nil {
		return v, false
	}
	v, err := parse(bytes.NewReader(data))
	if err != nil {
		fault(src, file, err)
		return v, false
	}
	return v, true
}

// describe fills in the environment, and what every sample has from its run:
// the kernel, and how far away the baseline was.
func (in *imported) describe(src *source, runs []*run2024, opt *Options) {
	in.kernels(runs)
	env := in.run.Environment
	for _, r := range runs {
		for direction, verdict := range r.policy {
			key := "check.policy." + r.config.id + "." + direction
			if old := env[key]; old != "" && old != verdict {
				src.faultf(path.Join(r.dir, "info-netpol"), 0, "the policy test of %s: %s, and %s in another run; it counts as fail", direction, verdict, old)
				verdict = "fail"
			}
			env[key] = verdict
		}
		if mtu := plausibleMTU(r.podMTU()); mtu > 0 {
			smallest(env, "pod.mtu."+r.config.id, mtu)
			opt.MTU = max(opt.MTU, mtu)
		}
	}
	for i := range in.samples {
		if s := &in.samples[i]; plausibleMTU(s.mss+tcpHeaders) > 0 {
			smallest(env, "pod.mss."+s.Contender, s.mss)
			opt.MTU = max(opt.MTU, s.mss+tcpHeaders)
		}
	}
	for i := range in.samples {
		s := &in.samples[i]
		if minimum, err := strconv.Atoi(env["pod.mss."+s.Contender]); err == nil && s.mss > minimum {
			s.note("mtu_discovered", "TCP began with segments of %d bytes, other tests of the contender with %d: the path carries less than the pods' interface says, and had to be found out", s.mss, minimum)
		}
	}
	if opt.LineRate == 0 {
		opt.LineRate, opt.assumed = lineRate2024, true
	}
	env["import.source"] = "InfraBuilder/benchmark-k8s-cni-2024-01, results/"
	in.notPaired()
}

// tcpHeaders is what IPv4 and TCP with timestamps take of an MTU, bytes.
const tcpHeaders = 20 + 32

// plausibleMTU is the MTU if an underlay can have it: the loopback's 65536 and
// slips don't count.
func plausibleMTU(mtu int) int {
	if mtu < 576 || mtu > 9216 {
		return 0
	}
	return mtu
}

// podMTU is the MTU of the pod's interface, 0 if unknown: of eth0, or else of
// the only one there is.
func (r *run2024) podMTU() int {
	if mtu := r.mtus["eth0"]; mtu > 0 || len(r.mtus) != 1 {
		return mtu
	}
	for _, mtu := range r.mtus {
		return mtu
	}
	return 0
}

// smallest keeps the smallest of the values that a key gets.
func smallest(env map[string]string, key string, n int) {
	if old, err := strconv.Atoi(env[key]); err != nil || n < old {
		env[key] = strconv.Itoa(n)
	}
}

// join adds a value to those that the key has.
func join(env map[string]string, key, v string) {
	if list := strings.Split(env[key], " "); env[key] != "" && !slices.Contains(list, v) {
		v = env[key] + " " + v
	} else if env[key] != "" {
		v = env[key]
	}
	env[key] = v
}

// kernels gives each sample the upstream version of its kernel, so that the
// contenders of a study that ran on security rebuilds of one kernel are
// compared with its baseline; what differs is noted.
func (in *imported) kernels(runs []*run2024) {
	for _, r := range runs {
		for i := range in.samples {
			if s := &in.samples[i]; r.kernel == "" && s.Contender == r.config.id && s.Round == r.round {
				r.kernel = s.release
			}
		}
	}
	releases := map[string]bool{}
	baseline := ""
	for _, r := range runs {
		if r.kernel != "" {
			releases[r.kernel] = true
		}
		if r.config.id == in.run.Baseline {
			baseline = cmp.Or(baseline, r.kernel)
		}
	}
	known := slices.Sorted(maps.Keys(releases))
	in.run.Environment["kernel.release"] = strings.Join(known, " ")
	versions := map[string]bool{}
	for _, k := range known {
		versions[upstream(k)] = true
	}
	for i := range in.samples {
		s := &in.samples[i]
		release := ""
		for _, r := range runs {
			if r.config.id == s.Contender {
				release = cmp.Or(release, r.kernel)
				if r.round == s.Round && r.kernel != "" {
					release = r.kernel
					break
				}
			}
		}
		switch {
		case release != "":
			s.Kernel = upstream(release)
		case len(versions) == 1:
			s.Kernel = upstream(known[0])
			s.note("kernel_unknown", "nothing says which kernel it ran on; taken as %s, like the others", s.Kernel)
		default:
			s.Kernel = "unknown"
		}
		if release != "" && baseline != "" && release != baseline {
			s.note("kernel_build", "kernel %s, and the baseline's is %s", release, baseline)
		}
	}
}

// notPaired says how far apart rounds of one number were measured.
func (in *imported) notPaired() {
	type at struct {
		step  string
		round int
	}
	base := map[at]*sample{}
	for i := range in.samples {
		if s := &in.samples[i]; s.Contender == in.run.Baseline && !s.Started.IsZero() {
			base[at{s.Step, s.Round}] = s
		}
	}
	for i := range in.samples {
		s := &in.samples[i]
		b := base[at{s.Step, s.Round}]
		if b == nil || b == s || s.Started.IsZero() {
			continue
		}
		if apart := s.Started.Sub(b.Started).Abs().Hours(); apart > 1 {
			s.note("not_interleaved", "measured %.0f h from the baseline of the same number, on a cluster of its own: rounds of one number are no pairs", apart)
		}
	}
}
