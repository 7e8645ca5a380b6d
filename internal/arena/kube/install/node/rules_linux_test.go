package node

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/linux"
)

// kubeRouter is what kube-router v2.1.0 leaves: three rules in FORWARD and one in
// POSTROUTING that lead to none of its chains, and two sets.
var kubeRouter = contender.Leftovers{
	Interfaces: []string{"kube-bridge"}, Chains: []string{"KUBE-ROUTER-"},
	Sets: []string{"kube-router-"}, Comments: []string{"allow outbound node port traffic"},
}

const (
	foreignRules = `
iptables -A FORWARD -i lo -j ACCEPT
iptables -A FORWARD -m comment --comment "of the node's owner" -j ACCEPT
iptables -t nat -A POSTROUTING -s 192.0.2.0/24 -j MASQUERADE
ipset create owners hash:net
`
	kubeRouterRules = `
ipset create kube-router-pod-subnets hash:net
ipset create kube-router-node-ips hash:ip
iptables -N KUBE-ROUTER-FORWARD
iptables -I FORWARD -m comment --comment "kube-router netpol - TEMCG2JMHZYE7H7T" -j KUBE-ROUTER-FORWARD
iptables -A FORWARD -m comment --comment "allow outbound traffic from pods" -i kube-bridge -j ACCEPT
iptables -A FORWARD -m comment --comment "allow inbound traffic to pods" -o kube-bridge -j ACCEPT
iptables -A FORWARD -m comment --comment "allow outbound node port traffic on node interface with which node ip is associated" -o eth0 -j ACCEPT
iptables -t nat -A POSTROUTING -m set --match-set kube-router-pod-subnets src -m set ! --match-set kube-router-pod-subnets dst -m set ! --match-set kube-router-node-ips dst -j MASQUERADE
`
)

// inFreshNamespace runs f in a network namespace of its own.
func inFreshNamespace(t *testing.T, f func(sh func(script string))) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root for a network namespace: sudo go test ./internal/arena/kube/install/node")
	}
	space, err := linux.NewNetNS("node")
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	err = space.Do(func() error {
		f(func(script string) {
			if out, err := exec.Command("sh", "-ec", script).CombinedOutput(); err != nil {
				t.Errorf("%v: %s%s", err, script, out)
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func look(t *testing.T, left contender.Leftovers) State {
	t.Helper()
	s, _, err := state(context.Background(), left)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Rules that lead to no chain of the product are known by comment, interface and
// set; those of others stay, and so do others' sets.
func TestCleanRules(t *testing.T) {
	inFreshNamespace(t, func(sh func(string)) {
		sh(foreignRules)
		before := look(t, kubeRouter)
		sh(kubeRouterRules)
		more := look(t, kubeRouter).ListAdded(before)
		for _, want := range []string{
			`rule in ip filter FORWARD: accept of kube-bridge "allow inbound traffic to pods" #`,
			`of set kube-router-pod-subnets of set kube-router-pod-subnets of set kube-router-node-ips #`,
			"ipset kube-router-node-ips",
		} {
			if !slices.ContainsFunc(more, func(thing string) bool { return strings.Contains(thing, want) }) {
				t.Errorf("no %s in %s", want, strings.Join(more, "\n"))
			}
		}
		if _, err := clean(context.Background(), Request{Leftovers: kubeRouter, Keep: before}); err != nil {
			t.Error(err)
		}
		after := look(t, kubeRouter)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("before and after: %s", diff)
		}
	})
}

// Rules without a name of their own are known by target and port. One that somebody had
// before stays, and so does one for every other port.
func TestCleanNamelessRules(t *testing.T) {
	const opened = "iptables -A INPUT -p udp --dport 6081 -j ACCEPT\n"
	kubeOVN := contender.Leftovers{Rules: []contender.Rule{{Target: "ACCEPT", Port: "udp/6081"}, {Target: "TCPMSS"}}}
	for name, owners := range map[string]string{
		"nothing before":     "true",
		"rules of the owner": opened + "iptables -A INPUT -p udp ! --dport 6081 -j ACCEPT; iptables -A INPUT -p udp --sport 6081 -j ACCEPT; iptables -A INPUT -p udp --dport 6000:6081 -j ACCEPT",
	} {
		t.Run(name, func(t *testing.T) {
			inFreshNamespace(t, func(sh func(string)) {
				sh(owners)
				sh("iptables -t mangle -N OWNERS; ip6tables -N OWNERS") // iptables keeps the tables that it made
				before := look(t, kubeOVN)
				if name == "nothing before" {
					sh(opened + "ip6" + strings.TrimPrefix(opened, "ip"))
				}
				sh("iptables -t mangle -A POSTROUTING -o eth0 -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1360")
				if len(look(t, kubeOVN).ListAdded(before)) == 0 {
					t.Error("the rules were not seen")
				}
				if _, err := clean(context.Background(), Request{Leftovers: kubeOVN, Keep: before}); err != nil {
					t.Error(err)
				}
				after := look(t, kubeOVN)
				if more, gone := after.ListAdded(before), after.ListLost(before); len(more)+len(gone) > 0 {
					t.Errorf("more %v, gone %v", more, gone)
				}
			})
		})
	}
}

// What a base chain does with other packets is a setting: Kube-OVN lets all pass.
func TestCleanPolicies(t *testing.T) {
	inFreshNamespace(t, func(sh func(string)) {
		sh("iptables -A FORWARD -j RETURN; iptables -P FORWARD DROP")
		before := look(t, contender.Leftovers{})
		sh("iptables -P FORWARD ACCEPT; iptables -t mangle -P FORWARD DROP")
		added := look(t, contender.Leftovers{}).ListAdded(before)
		if want := "setting policy of ip filter FORWARD: it is ACCEPT and was DROP"; !slices.Contains(added, want) {
			t.Errorf("%q is not in %q", want, added)
		}
		if _, err := clean(context.Background(), Request{Keep: before}); err != nil {
			t.Error(err)
		}
		after := look(t, contender.Leftovers{})
		if more, gone := after.ListAdded(before), after.ListLost(before); len(more)+len(gone) > 0 {
			t.Errorf("more %v, gone %v", more, gone)
		}
	})
}

// Cilium moves the rule of the local table, which gets its place back.
func TestCleanMovedRule(t *testing.T) {
	inFreshNamespace(t, func(sh func(string)) {
		before := look(t, contender.Leftovers{})
		sh("for family in -4 -6; do ip $family rule add preference 100 lookup local; ip $family rule delete preference 0; done")
		removed, err := clean(context.Background(), Request{Keep: before})
		if err != nil || len(removed) != 2 {
			t.Errorf("removed %q, %v", removed, err)
		}
		after := look(t, contender.Leftovers{})
		if more, gone := after.ListAdded(before), after.ListLost(before); len(more)+len(gone) > 0 {
			t.Errorf("more %v, gone %v", more, gone)
		}
	})
}

// Nameless rules of others stay: of another protocol or target, of a Service of kube-proxy's,
// which no state lists, and all on a node that nobody had looked at before.
func TestCleanLeavesNamelessRules(t *testing.T) {
	left := contender.Leftovers{Rules: []contender.Rule{{Target: "ACCEPT", Port: "udp/6081"}, {Target: "TCPMSS"}}}
	for name, keep := range map[string]bool{"looked at before": true, "not looked at": false} {
		t.Run(name, func(t *testing.T) {
			inFreshNamespace(t, func(sh func(string)) {
				before := State{}
				others := `iptables -A INPUT -p tcp --dport 6081 -j ACCEPT
					iptables -A INPUT -p udp --dport 6081 -j DROP
					iptables -N KUBE-SVC-VARNISH; iptables -N KUBE-SERVICES
					iptables -A KUBE-SERVICES -p udp --dport 6081 -j ACCEPT
					iptables -A KUBE-SERVICES -p udp --dport 6081 -j KUBE-SVC-VARNISH`
				if !keep {
					before = nil
					others += `
					iptables -A INPUT -p udp --dport 6081 -j ACCEPT
					iptables -t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu`
				}
				sh(others)
				removed, err := clean(context.Background(), Request{Leftovers: left, Keep: before})
				if err != nil {
					t.Error(err)
				}
				for _, thing := range removed {
					if strings.HasPrefix(thing, "rule in") {
						t.Errorf("removed %s", thing)
					}
				}
			})
		})
	}
}

// A rule that somebody had before stays, though it is about an interface that the
// product uses, too; and the proof sees a rule that was exchanged for another.
func TestRulesAreToldApart(t *testing.T) {
	inFreshNamespace(t, func(sh func(string)) {
		sh(`iptables -A FORWARD -i kube-bridge -p udp -j ACCEPT; iptables -A FORWARD -p tcp --dport 80 -j ACCEPT`)
		before := look(t, kubeRouter)
		sh(`iptables -A FORWARD -i kube-bridge -j ACCEPT`)
		if _, err := clean(context.Background(), Request{Leftovers: kubeRouter, Keep: before}); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(before, look(t, kubeRouter)); diff != "" {
			t.Error(diff)
		}
		sh(`iptables -D FORWARD -p tcp --dport 80 -j ACCEPT; iptables -A FORWARD -p tcp --dport 81 -j ACCEPT`)
		after := look(t, kubeRouter)
		if more, gone := after.ListAdded(before), after.ListLost(before); len(more) != 1 || len(gone) != 1 || more[0] == gone[0] {
			t.Errorf("more %v, gone %v, want one rule each", more, gone)
		}
	})
}

// Calico's rules in FORWARD accept and mark by themselves, and have its comment.
func TestCleanCalicoRules(t *testing.T) {
	left := contender.Leftovers{Interfaces: []string{"cali*"}, Chains: []string{"cali-"}, Comments: []string{"cali:"}}
	inFreshNamespace(t, func(sh func(string)) {
		sh(foreignRules)
		before := look(t, left)
		sh(`
iptables -A FORWARD -m comment --comment cali:S93hcgKJrXEyskwy -m comment --comment "Policy explicitly accepted packet." -m mark --mark 0x10000/0x10000 -j ACCEPT
iptables -A FORWARD -m comment --comment cali:mp77cMpurHhyjLrM -j MARK --set-xmark 0x10000/0x10000
iptables -A FORWARD -i cali+ -j DROP`)
		if more := look(t, left).ListAdded(before); len(more) != 3 {
			t.Errorf("three rules came, seen %v", more)
		}
		if _, err := clean(context.Background(), Request{Leftovers: left, Keep: before}); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(before, look(t, left)); diff != "" {
			t.Error(diff)
		}
	})
}

// A setting that the product changed gets its value back.
func TestCleanSettings(t *testing.T) {
	inFreshNamespace(t, func(func(string)) {
		write := func(value string) {
			if err := os.WriteFile("/proc/sys/net/ipv4/conf/all/rp_filter", []byte(value), 0o644); err != nil {
				t.Error(err)
			}
		}
		write("1")
		before := look(t, contender.Leftovers{})
		write("2")
		want := []string{"setting net/ipv4/conf/all/rp_filter: it is 2 and was 1"}
		if diff := cmp.Diff(want, look(t, contender.Leftovers{}).ListAdded(before)); diff != "" {
			t.Error(diff)
		}
		if _, err := clean(context.Background(), Request{Keep: before}); err != nil {
			t.Error(err)
		}
		if more := look(t, contender.Leftovers{}).ListAdded(before); len(more) > 0 {
			t.Error(more)
		}
		// Whoever can write the journal may write no other file.
		if removed, err := cleanSettings(State{setting: {"net/ipv4/conf/all/../../tcp_fin_timeout = 7", "kernel/core_pattern = x"}}); err != nil || removed != nil {
			t.Errorf("%v, %v", removed, err)
		}
	})
}

func TestSetName(t *testing.T) {
	inFreshNamespace(t, func(sh func(string)) {
		sh("ipset create first hash:ip; ipset create second hash:ip")
		if sets, err := netlink.IpsetListAll(); err != nil || len(sets) != 2 {
			t.Errorf("%v, %v", sets, err)
		}
		if names := setName(0) + " " + setName(1) + setName(2); names != "first second" {
			t.Errorf("sets 0, 1 and 2 are %q", names)
		}
	})
}

func TestSavedRule(t *testing.T) {
	for line, want := range map[string]string{
		`-A FORWARD -i cali+ ! -o "eth0" -m set --match-set cali40s src -m comment --comment "say \"yes\" to all" -j MARK --set-xmark 0x1/0x1`: `MARK of cali* of eth0 of set cali40s "say \"yes\" to all" #`,
	} {
		if got := parseSavedRule("legacy ip filter", "FORWARD", line).String(); !strings.HasPrefix(got, "legacy ip filter FORWARD: "+want) {
			t.Errorf("%s: %s, want %s…", line, got, want)
		}
	}
	for line, want := range map[string]string{
		"-A FORWARD -p udp -m udp --dport 6081 -j ACCEPT":      "udp/6081",
		"-A FORWARD -p tcp -m tcp --dport 6081 -j ACCEPT":      "tcp/6081",
		"-A FORWARD -p udp -m udp ! --dport 6081 -j ACCEPT":    "",
		"-A FORWARD -p udp -m udp --dport 6000:6081 -j ACCEPT": "",
	} {
		if got := strings.Join(parseSavedRule("legacy ip filter", "FORWARD", line).ports, " "); got != want {
			t.Errorf("%s: ports %q, want %q", line, got, want)
		}
	}
}

func TestUserComments(t *testing.T) {
	data := []byte("\x00\x03ab\x00\x02\x01x\x00\x02c\x00\x00\x7ftoo long")
	if diff := cmp.Diff([]string{"ab", "c"}, userComments(data)); diff != "" {
		t.Error(diff)
	}
}

// /proc/net/ip_vs as a node of kube-router with its service proxy has it.
func TestParseIPVS(t *testing.T) {
	got, err := parseIPVS(strings.NewReader(`IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
TCP  0A600001:01BB rr
  -> 0A4D0001:192B      Masq    1      0          0
FWM  000015C0 rr
`))
	if diff := cmp.Diff([]string{"TCP 0A600001:01BB", "FWM 000015C0"}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}
