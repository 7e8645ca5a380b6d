package tune

import (
	"fmt"
	"strconv"
	"strings"
)

// sysctlRow is a setting that is sysctls and nothing else.
type sysctlRow struct {
	Setting
	keys []key
}

// key is a sysctl with the value that the study sets.
type key struct {
	name, value string
	// atLeast leaves a value alone that is as large already.
	atLeast bool
}

// sysctls are the studies' kernel parameters, a row each.
func sysctls() []Setting {
	rows := []sysctlRow{
		{
			Setting: Setting{
				Name: "file-max", Summary: "open files of the machine: at least 1,024,000",
				Why:  "every connection is an open file",
				Cost: "none to speak of", Avoid: "today's kernels have no limit worth raising",
				Scope: ScopeMachine,
			},
			keys: []key{{"fs.file-max", "1024000", true}},
		},
		{
			Setting: Setting{
				Name: "local-ports", Summary: "client ports from 2000 to 65535",
				Why:   "a client that opens many connections to one address runs out of 28,000 ports",
				Cost:  "connections may take ports that servers want later (etcd 2379, kubelet 10250, NodePorts 30000–32767): put those into net.ipv4.ip_local_reserved_ports",
				Avoid: "on nodes with NodePort Services, without reserved ports",
				Scope: ScopeNamespace,
			},
			keys: []key{{"net.ipv4.ip_local_port_range", "2000 65535", false}},
		},
		{
			Setting: Setting{
				Name: "tw-buckets", Summary: "room for 2,000,000 closed connections in TIME-WAIT",
				Why:   "beyond the limit TIME-WAIT is cut short, which the kernel logs",
				Cost:  "some hundred bytes each",
				Avoid: "when connections are kept open",
				Scope: ScopeNamespace,
			},
			keys: []key{{"net.ipv4.tcp_max_tw_buckets", "2000000", true}},
		},
		{
			Setting: Setting{
				Name: "tw-reuse", Summary: "new connections may take a port that is in TIME-WAIT",
				Why:   "new connections per second are not limited by ports",
				Cost:  "needs TCP timestamps on both sides; safe for outgoing connections (unlike tcp_tw_recycle)",
				Avoid: "when clients keep their connections",
				Scope: ScopeNamespace,
			},
			keys: []key{{"net.ipv4.tcp_tw_reuse", "1", false}},
		},
		{
			Setting: Setting{
				Name: "fin-timeout", Summary: "half-closed connections given up after 10 s",
				Why:   "fewer leftovers of clients that vanish",
				Cost:  "a peer that takes longer to close is reset",
				Avoid: "with peers far away",
				Scope: ScopeNamespace,
			},
			keys: []key{{"net.ipv4.tcp_fin_timeout", "10", false}},
		},
		{
			Setting: Setting{
				Name: "slow-start-idle", Summary: "connections keep their congestion window while idle",
				Why:   "the first response after a pause is not slowed down",
				Cost:  "a burst after a pause may meet a network that has changed",
				Avoid: "across networks that you share",
				Scope: ScopeNamespace,
			},
			keys: []key{{"net.ipv4.tcp_slow_start_after_idle", "0", false}},
		},
		{
			Setting: Setting{
				Name: "socket-limits", Summary: "programs may ask for socket buffers of 512 MiB",
				Why:   "a program that sets its buffers itself (iperf3 -w, UDP servers) gets what it asks for",
				Cost:  "memory, where programs ask for much",
				Avoid: "for TCP that sizes its buffers itself: take socket-buffers",
				Scope: ScopeMachine, Studies: []string{"2024 (tuned)"},
			},
			keys: []key{{"net.core.rmem_max", "536870912", true}, {"net.core.wmem_max", "536870912", true}},
		},
		{
			Setting: Setting{
				Name: "socket-buffers", Summary: "TCP may grow a socket's buffers to 256 MiB",
				Why:   "one TCP stream fills a fast or long path only when its buffers hold what is under way",
				Cost:  "memory under many slow readers; large receive buffers go past the caches",
				Avoid: "on nodes with thousands of connections and little memory",
				Scope: ScopeNamespace, Studies: []string{"2024 (tuned)"},
			},
			keys: []key{{"net.ipv4.tcp_rmem", "* * 268435456", true}, {"net.ipv4.tcp_wmem", "* * 268435456", true}},
		},
		{
			Setting: Setting{
				Name: "metrics-save", Summary: "TCP forgets what it learned of a peer when the connection ends",
				Why:   "one bad run does not slow the next one down; rounds are independent",
				Cost:  "every connection probes anew",
				Avoid: "outside of benchmarks",
				Scope: ScopeNamespace, Studies: []string{"2024 (tuned)"},
			},
			keys: []key{{"net.ipv4.tcp_no_metrics_save", "1", false}},
		},
	}
	var list []Setting
	for _, r := range rows {
		list = append(list, r.setting())
	}
	return list
}

func (r sysctlRow) setting() Setting {
	s := r.Setting
	s.Source = "kernel Documentation/networking/ip-sysctl.rst"
	if len(s.Studies) == 0 {
		s.Studies = []string{"2016"}
	}
	if s.Name == "file-max" {
		s.Source = "kernel Documentation/admin-guide/sysctl/fs.rst"
	}
	s.Plan = func(f *Facts, _ Params) (Proposal, error) { return planKeys(f, r.keys) }
	return s
}

// planKeys plans those keys that the machine has; it needs one at least.
func planKeys(f *Facts, keys []key) (Proposal, error) {
	var p Proposal
	var reason error
	for _, k := range keys {
		from, err := f.read(sysctl(k.name))
		if inapplicable(err) != nil {
			if reason != nil {
				continue
			}
			reason = err
			if f.m.Namespace {
				reason = notApplicable("a namespace has no %s of its own", k.name)
			}
			continue
		}
		if err != nil {
			return p, err
		}
		to, err := k.target(from)
		if err != nil {
			return p, err
		}
		p.Changes = append(p.Changes, Change{sysctl(k.name), from, to})
	}
	if len(p.Changes) == 0 {
		return p, reason
	}
	return p, nil
}

// target is the value to set where now is set: a * keeps what is there.
func (k key) target(now string) (string, error) {
	have, want := strings.Fields(now), strings.Fields(k.value)
	if len(have) > 1 && len(want) == 1 {
		want = strings.Split(k.value, ",") // as people write it on a command line
	}
	if len(have) != len(want) {
		return "", fmt.Errorf("%s is %q; want %d numbers", k.name, now, len(want))
	}
	for i := range want {
		keep := want[i] == "*"
		if !keep && k.atLeast {
			h, err := strconv.ParseUint(have[i], 10, 64)
			if err != nil {
				return "", fmt.Errorf("%s is %q: %w", k.name, now, err)
			}
			w, err := strconv.ParseUint(want[i], 10, 64)
			if err != nil {
				return "", err
			}
			keep = h >= w
		}
		if keep {
			want[i] = have[i]
		}
	}
	return strings.Join(want, " "), nil
}

// Sysctl is the setting of one kernel parameter of the user's own.
func Sysctl(name, value string) (Setting, error) {
	if name == "" || value == "" || strings.Contains(name, "..") || strings.HasPrefix(name, "/") {
		return Setting{}, fmt.Errorf("sysctl %q=%q: want KEY=VALUE as in sysctl(8)", name, value)
	}
	scope := ScopeMachine
	if strings.HasPrefix(name, "net.") {
		scope = ScopeNamespace
	}
	return Setting{
		Name: name, Summary: name + " = " + value, Why: "asked for on the command line", Source: "sysctl(8)", Scope: scope,
		Plan: func(f *Facts, _ Params) (Proposal, error) { return planKeys(f, []key{{name, value, false}}) },
	}, nil
}
