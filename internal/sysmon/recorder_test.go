package sysmon

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// sameValue takes absent values as equal to each other.
var sameValue = cmp.Comparer(func(a, b Value) bool { return a == b || a.IsAbsent() && b.IsAbsent() })

// of returns what Start asks for.
func of(proc fs.FS, scope Scope, labels map[string]string) Options {
	return Options{Root: Root{Proc: proc, Sys: fstest.MapFS{}}, Labels: labels, Samplers: OfScope(scope, Samplers())}
}

const devHeadings = "Inter-| Receive\n face |bytes\n"

// TestRecorder plays a machine whose interfaces come, go and come again.
func TestRecorder(t *testing.T) {
	root := fstest.MapFS{}
	set := func(devices string) {
		root["net/dev"] = &fstest.MapFile{Data: []byte(devHeadings + devices)}
	}
	set("eth0: 100 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n")
	labels := map[string]string{"endpoint": "pod1"}
	r, err := newRecorder(of(root, ScopePod, labels))
	if err != nil {
		t.Fatal(err)
	}
	labels["endpoint"] = "changed by the caller"
	times := []time.Time{r.Mark()}
	set("eth0: 200 2 0 0 0 0 0 0 20 2 0 0 0 0 0 0\n veth1: 5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0\n")
	times = append(times, r.Mark())
	set("veth1: 7 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0\n")
	times = append(times, r.Mark())
	set("eth0: damaged\n")
	times = append(times, r.Mark())
	set("eth0: 350 3 0 0 0 0 0 0 30 3 0 0 0 0 0 0\n")
	close(r.done) // as if the ticking had ended
	rec := r.Stop()
	if again := r.Stop(); again != rec {
		t.Error("a second Stop gave another recording")
	}
	if after := r.Mark(); !after.Equal(rec.Times[len(rec.Times)-1]) {
		t.Errorf("Mark after Stop gave %v", after)
	}

	if len(rec.Times) != 5 {
		t.Fatalf("%d snapshots, want 5", len(rec.Times))
	}
	if diff := cmp.Diff(times, rec.Times[:4]); diff != "" {
		t.Errorf("marks and snapshots differ: %s", diff)
	}
	if rec.Labels["endpoint"] != "pod1" {
		t.Errorf("labels %v", rec.Labels)
	}
	f, ok := rec.Family("node_network_receive_bytes")
	if !ok {
		t.Fatal("nothing received")
	}
	want := []Series{
		{map[string]string{"device": "eth0"}, []Value{100, 200, Absent, Absent, 350}},
		{map[string]string{"device": "veth1"}, []Value{Absent, 5, 7, Absent, Absent}},
	}
	if diff := cmp.Diff(want, f.Series, sameValue); diff != "" {
		t.Error(diff)
	}
	// snmp, netstat and the fourth dev are faults, each told once.
	if len(rec.Faults) != 3 || !strings.Contains(strings.Join(rec.Faults, "\n"), "tcpudp: open net/snmp") {
		t.Errorf("faults %q", rec.Faults)
	}
	if _, there := rec.Family("node_cpu_seconds"); there {
		t.Error("a pod recorded the machine's CPUs")
	}
}

func TestStartErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		scope  Scope
		labels map[string]string
		want   string
	}{
		{"scope", "nod", nil, `unknown scope "nod"; did you mean "node"?`},
		{"label name", ScopeNode, map[string]string{"a-b": "c"}, `label "a-b"`},
		{"reserved label", ScopeNode, map[string]string{"__name__": "c"}, `label "__name__"`},
		{"label of a sampler", ScopePod, map[string]string{"device": "c"}, `label "device": `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Start(Root{Proc: fstest.MapFS{}, Sys: fstest.MapFS{}}, tt.scope, tt.labels)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestValueJSON(t *testing.T) {
	in := Series{Values: []Value{1.5, Absent, 0}}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(b), `{"values":[1.5,null,0]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var out Series
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out, sameValue); diff != "" {
		t.Error(diff)
	}
	if err := json.Unmarshal([]byte(`{"values":["x"]}`), &out); err == nil {
		t.Error("a text was taken as a value")
	}
	if _, err := json.Marshal(Value(math.Inf(1))); err == nil {
		t.Error("an infinity was written")
	}
}

// TestRealRecording records this machine while this process is busy, and
// compares with what getrusage says of the process.
func TestRealRecording(t *testing.T) {
	if runtime.GOOS != "linux" {
		if _, err := os.Stat("/proc/stat"); errors.Is(err, fs.ErrNotExist) {
			return // nothing of the machine is recorded here
		}
	}
	r, err := Start(Machine(), ScopeNode, map[string]string{"node": "here"})
	if err != nil {
		t.Fatal(err)
	}
	began := r.Mark()
	before := usage(t)
	for time.Since(began) < 2500*time.Millisecond {
		busyFor(10 * time.Millisecond)
	}
	after := usage(t)
	ended := r.Mark()
	rec := r.Stop()

	for _, fault := range rec.Faults {
		t.Errorf("could not read %s", fault)
	}
	// The start, two marks, the end, and at least the ticks of 2.5 s less one.
	if n := len(rec.Times); n < 5 {
		t.Errorf("%d snapshots in %v", n, ended.Sub(began))
	}
	elapsed := ended.Sub(began).Seconds()
	used := after - before
	get := func(family string, match map[string]string) float64 {
		t.Helper()
		v, err := rec.Delta(family, match, began, ended)
		if err != nil {
			t.Error(err)
		}
		return v
	}
	if got := get("cnibench_recorder_cpu_seconds", nil); math.Abs(got-used) > 0.2+0.1*used {
		t.Errorf("own CPU %.3f s, getrusage %.3f s", got, used)
	}
	// The machine's busy time holds ours, but for the ticks that the kernel
	// charges to interrupts or to the hypervisor.
	machine := 0.0
	for _, mode := range cpuModes {
		if mode != "idle" && mode != "iowait" {
			machine += get("node_cpu_seconds", map[string]string{"mode": mode})
		}
	}
	if machine < 0.7*used {
		t.Errorf("CPUs were busy for %.2f s, this process alone for %.2f s", machine, used)
	}
	// Where the tests run with a nice value, it is the mode nice.
	if user := get("node_cpu_seconds", map[string]string{"mode": "user"}) + get("node_cpu_seconds", map[string]string{"mode": "nice"}); user <= 0 {
		t.Errorf("user time %v", user)
	}
	f, _ := rec.Family("node_cpu_seconds")
	cpus := float64(len(f.Series)) / float64(len(cpuModes))
	if all := get("node_cpu_seconds", nil); all < 0.5*elapsed*cpus || all > 1.5*elapsed*cpus {
		t.Errorf("%.2f s in all modes, %v CPUs for %.2f s", all, cpus, elapsed)
	}
	if n := get("node_context_switches", nil); n <= 0 {
		t.Errorf("%v context switches", n)
	}
	memory, err := rec.Mean("node_memory_used_bytes", nil, began, ended)
	if err != nil {
		t.Error(err)
	}
	total, err := rec.Mean("node_memory_MemTotal_bytes", nil, began, ended)
	if err != nil {
		t.Error(err)
	}
	own, err := rec.Mean("cnibench_recorder_resident_memory_bytes", nil, began, ended)
	if err != nil {
		t.Error(err)
	}
	if !(0 < own && own < total && 0 < memory && memory < total) {
		t.Errorf("memory: own %v, used %v, total %v", own, memory, total)
	}
	if _, err := rec.Delta("node_network_receive_bytes", map[string]string{"device": "lo"}, began, ended); err != nil {
		t.Error(err)
	}
}

var sink float64

func busyFor(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		for i := range 1000 {
			sink += math.Sqrt(float64(i))
		}
	}
}

// usage returns the CPU time of this process, in seconds.
func usage(t *testing.T) float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// TestConcurrentMarks is for the race detector, and for times that grow.
func TestConcurrentMarks(t *testing.T) {
	r, err := newRecorder(of(os.DirFS("testdata/proc"), ScopeNode, nil))
	if err != nil {
		t.Fatal(err)
	}
	r.snapshot()
	go r.run(time.Millisecond)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				r.Mark()
			}
		})
	}
	wg.Wait()
	wg.Go(func() { r.Stop() })
	rec := r.Stop()
	wg.Wait()
	if err := check([]*Recording{rec}); err != nil {
		t.Error(err)
	}
}

// BenchmarkSnapshot is the recorder's cost for one second of this machine.
func BenchmarkSnapshot(b *testing.B) {
	for _, scope := range []Scope{ScopeNode, ScopePod} {
		b.Run(string(scope), func(b *testing.B) {
			r, err := newRecorder(of(Machine().Proc, scope, nil))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				r.take(r.now())
			}
		})
	}
	b.Run("36 CPUs parsed", func(b *testing.B) {
		r, err := newRecorder(of(os.DirFS("testdata/old36"), ScopeNode, nil))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			r.take(r.now())
		}
	})
}
