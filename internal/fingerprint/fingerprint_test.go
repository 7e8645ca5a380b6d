package fingerprint

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/host"
)

var update = flag.Bool("update", false, "write the goldens anew")

// printer is a Runner whose programs only print; the others are missing.
type printer map[string]struct{ stdout, stderr string }

func (p printer) Start(_ context.Context, c host.Command) (host.Process, error) {
	text, ok := p[c.String()]
	if !ok {
		return nil, &host.ProgramError{Program: c.Argv[0]}
	}
	if text.stdout == "" && text.stderr == "" {
		return ended{&host.ExitError{Command: c.String(), Code: 1}}, nil
	}
	_, err := io.WriteString(c.Stdout, text.stdout)
	_, err2 := io.WriteString(c.Stderr, text.stderr)
	return ended{errors.Join(err, err2)}, nil
}

type ended struct{ err error }

func (e ended) Wait() error          { return e.err }
func (ended) Signal(os.Signal) error { return nil }

// collect reads a fixture.
func collect(dir string, runner host.Runner, l *link) map[string]string {
	c := &collector{
		ctx: context.Background(), root: os.DirFS(dir), env: map[string]string{},
		opt: Options{Runner: runner, Uplink: "eth0", CNIPath: []string{"", "/", "/opt/cni/bin", "/usr/lib/cni/"}},
		link: func(string) (link, bool) {
			if l == nil {
				return link{}, false
			}
			return *l, true
		},
	}
	c.collect()
	delete(c.env, "go.version") // of the toolchain that runs the test
	return c.env
}

func recordedVM() map[string]string {
	return collect("testdata/vm", printer{
		"iperf3 --version":       {stdout: "iperf 3.12 (cJSON 1.7.15)\nLinux worker7 6.18.44 #1 SMP x86_64\n"},
		"nginx -v":               {stderr: "nginx version: nginx/1.22.1\n"},
		"qperf --version":        {}, // fails
		"tc qdisc show dev eth0": {stdout: "qdisc fq_codel 0: parent :1 limit 10240p\nqdisc mq 0: root \nqdisc fq_codel 0: parent :2 limit 10240p\nqdisc clsact ffff: parent ffff:fff1 \n"},
	}, &link{mtu: 1500, driver: "veth", features: map[string]bool{
		"tx-tcp-segmentation": true, "tx-generic-segmentation": true, "rx-gro": false, "rx-checksum": true,
		"tx-checksum-ip-generic": true, "tx-checksum-ipv4": false, "highdma": true,
	}})
}

func TestCollect(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"vm":    recordedVM(),
		"numa":  collect("testdata/numa", nil, nil),
		"empty": collect("testdata/nothing-is-here", printer{}, nil),
	} {
		t.Run(name, func(t *testing.T) {
			golden := "testdata/" + name + ".json"
			if *update {
				text, err := json.MarshalIndent(env, "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(golden, append(text, '\n'), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]string
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, env); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			private(t, env)
		})
	}
}

var (
	// identity matches MAC addresses and UUIDs.
	identity = regexp.MustCompile(`(?i)\b([0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b|[0-9a-f]{8}-[0-9a-f]{4}-`)
	address  = regexp.MustCompile(`\b\d+\.\d+\.\d+\.\d+\b`)
	// versioned keys may hold four numbers with dots that are no address.
	versioned = regexp.MustCompile(`^(kernel\.(release|version)|uplink\.firmware|tool\..*)$`)
)

// private checks that nothing in the values names a machine or person.
func private(t *testing.T, env map[string]string) {
	t.Helper()
	for key, value := range env {
		if identity.MatchString(value) || address.MatchString(value) && !versioned.MatchString(key) {
			t.Errorf("%s names a machine: %s", key, value)
		}
		for _, word := range []string{"worker7", "secret", "7XYZ123"} {
			if strings.Contains(value, word) {
				t.Errorf("%s names %s: %s", key, word, value)
			}
		}
	}
}

func TestVirtualisation(t *testing.T) {
	const guest, metal, arm = "flags : fpu hypervisor\n", "flags : fpu vmx\n", "CPU implementer : 0x41\nCPU part : 0xd0c\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  map[string]string
	}{
		"nothing known":     {nil, map[string]string{}},
		"metal":             {map[string]string{"proc/cpuinfo": metal, "sys/class/dmi/id/product_name": "PowerEdge R650"}, map[string]string{"virt.hypervisor": "none"}},
		"flag only":         {map[string]string{"proc/cpuinfo": guest}, map[string]string{"virt.hypervisor": "unnamed"}},
		"clock":             {map[string]string{"proc/cpuinfo": guest, clockDir + "available_clocksource": "kvm-clock tsc"}, map[string]string{"virt.hypervisor": "KVM"}},
		"xen":               {map[string]string{"proc/cpuinfo": guest, "sys/hypervisor/type": "xen\n"}, map[string]string{"virt.hypervisor": "xen"}},
		"cloud":             {map[string]string{"proc/cpuinfo": guest, "sys/class/dmi/id/sys_vendor": "Amazon EC2\n", "sys/class/dmi/id/product_name": "m5.large\n"}, map[string]string{"virt.hypervisor": "unnamed", "virt.product": "Amazon EC2 m5.large"}},
		"Arm without flags": {map[string]string{"proc/cpuinfo": arm}, map[string]string{}},
		"Arm guest":         {map[string]string{"proc/cpuinfo": arm, "sys/class/dmi/id/sys_vendor": "QEMU\n", "sys/class/dmi/id/product_name": "KVM Virtual Machine\n"}, map[string]string{"virt.hypervisor": "unnamed", "virt.product": "QEMU KVM Virtual Machine"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{}
			for file, text := range c.files {
				root[file] = &fstest.MapFile{Data: []byte(text)}
			}
			got := &collector{root: root, env: map[string]string{}}
			got.virtualisation()
			if diff := cmp.Diff(c.want, got.env); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestBrNetfilter(t *testing.T) {
	for want, files := range map[string][2]string{
		"":           {"proc/version", "x"},
		"not loaded": {netDir + "/ipv4/ip_forward", "1"},
		"on":         {netDir + "/bridge/bridge-nf-call-iptables", "1\n"},
		"off":        {netDir + "/bridge/bridge-nf-call-iptables", "0\n"},
	} {
		c := &collector{root: fstest.MapFS{files[0]: {Data: []byte(files[1])}}}
		if got := c.brNetfilter(); got != want {
			t.Errorf("%v: %q, want %q", files, got, want)
		}
	}
}

func TestDifferences(t *testing.T) {
	a := recordedVM()
	if got := Differences(a, maps.Clone(a)); got != nil {
		t.Errorf("a machine differs from itself in %v", got)
	}
	b := maps.Clone(a)
	b["kernel.release"] = "6.1.0"
	b["cpu.governor"] = "powersave" // only b
	delete(b, "tool.iperf3")        // only a
	b["tcp.congestion_control"] = "cubic"
	b["tcp.available_congestion_control"] = "cubic"
	b["conntrack.count"] = "77"
	b["sysctl.net.core.rmem_max"] = "1"
	want := []string{"cpu.governor", "kernel.release", "tcp.congestion_control", "tool.iperf3"}
	if diff := cmp.Diff(want, Differences(a, b)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cpu.model"}, Differences(nil, map[string]string{"cpu.model": "x"})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSameMachine(t *testing.T) {
	then := map[string]string{"kernel.release": "6.1.0", "cpu.model": "AMD EPYC", "cpu.online": "0-1", "uplink.mtu": "1500"}
	for name, c := range map[string]struct {
		change map[string]string
		want   string // part of the error
	}{
		"same":         {nil, ""},
		"other uplink": {map[string]string{"uplink.mtu": "9000"}, ""},
		"other kernel": {map[string]string{"kernel.release": "6.18.1"}, `kernel.release was "6.1.0", is "6.18.1"`},
		"CPU offline":  {map[string]string{"cpu.online": "0"}, `cpu.online was "0-1", is "0"`},
		"other CPU":    {map[string]string{"cpu.model": "Xeon"}, `cpu.model was "AMD EPYC", is "Xeon"`},
	} {
		t.Run(name, func(t *testing.T) {
			now := maps.Clone(then)
			maps.Copy(now, c.change)
			err := SameMachine(then, now)
			if c.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if !errors.Is(err, ErrOtherMachine) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if err := SameMachine(then, map[string]string{}); err != nil {
		t.Errorf("gaps are no proof of another machine: %v", err)
	}
}
