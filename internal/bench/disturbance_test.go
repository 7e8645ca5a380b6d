package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/procfs"
)

// fakeProc is a /proc of a machine with two CPUs.
type fakeProc struct {
	t   *testing.T
	dir string
}

func (p fakeProc) write(name, format string, args ...any) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, fmt.Appendf(nil, format, args...), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// set writes what the machine has done so far: ticks of user time of all, and of the
// run's own process; microseconds of pressure.
func (p fakeProc) set(user, own, crowded, memory int) {
	p.write("stat", "cpu %d 0 0 %d 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n", user, 1000-user)
	p.write("7/stat", "7 (vxlan-daemon) S 1 7 7 0 -1 0 0 0 0 0 %d 0 0 0 20 0 1 0 100 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", own)
	for name, total := range map[string]int{"cpu": crowded, "memory": memory} {
		p.write("pressure/"+name, "some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", total)
	}
}

// The detector drops cycles for what others do, and never for what a contender causes itself:
// neither the CPU time of its own processes nor the pressure on the CPUs while it is
// loaded. Else a contender would be measured only where it did little of that.
func TestGateSeesOthersAlone(t *testing.T) {
	const second = 1_000_000
	for name, c := range map[string]struct {
		user, own, crowded, memory int // within the cycle
		before                     int // pressure in the pause before
		want                       bool
	}{
		"quiet":                             {},
		"the contender's own daemon":        {user: 500, own: 500},
		"pressure that the load makes":      {user: 500, own: 500, crowded: second},
		"another process":                   {user: 500, own: 100, want: true},
		"a crowd before the cycle":          {before: second, want: true},
		"memory that somebody waits for":    {memory: 100 * second, want: true},
		"a moment in which memory is short": {memory: 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := fakeProc{t, t.TempDir()}
			p.set(0, 0, 0, 0)
			fs, err := procfs.NewFS(p.dir)
			if err != nil {
				t.Fatal(err)
			}
			g := &localMachine{proc: fs}
			g.begin()
			g.crowded = float64(c.before) / second
			g.from.total = 0
			p.set(c.user, c.own, c.crowded, c.memory)
			if why, _ := g.end(); (why != "") != c.want {
				t.Errorf("says %q", why)
			}
		})
	}
}
