//go:build linux

package lab

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePlacement(t *testing.T) {
	for _, c := range []struct {
		name, in string
		cpus     []int
		want     string
		bad      bool
	}{
		{name: "one CPU is shared", cpus: []int{0}, want: "client=0,server=0,rest=0"},
		{name: "two are split", cpus: []int{0, 1}, want: "client=0,server=1,rest=0+1"},
		{name: "four leave one to the rest", cpus: []int{0, 1, 2, 3}, want: "client=1,server=2+3,rest=0"},
		{name: "eight", cpus: []int{0, 1, 2, 3, 4, 5, 6, 7}, want: "client=1+2+3,server=4+5+6+7,rest=0"},
		{name: "chosen", in: "client=0-1+3,server=2", cpus: []int{0, 1, 2, 3}, want: "client=0+1+3,server=2,rest=0"},
		{name: "others than the first", cpus: []int{2, 5}, want: "client=2,server=5,rest=2+5"},
		{name: "a CPU of somebody else", in: "client=0", cpus: []int{2, 5}, bad: true},
		{name: "not there", in: "client=4", cpus: []int{0, 1, 2, 3}, bad: true},
		{name: "backwards", in: "client=3-1", cpus: []int{0, 1, 2, 3}, bad: true},
		{name: "role", in: "clint=1", cpus: []int{0, 1, 2, 3}, bad: true},
		{name: "no list", in: "client", cpus: []int{0, 1, 2, 3}, bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := ParsePlacement(c.in, c.cpus)
			if (err != nil) != c.bad {
				t.Fatalf("error %v", err)
			}
			if err == nil {
				if diff := cmp.Diff(c.want, p.String()); diff != "" {
					t.Error(diff)
				}
				again, err := ParsePlacement(p.String(), c.cpus)
				if err != nil || again.String() != p.String() {
					t.Errorf("%s does not read itself: %v", p, err)
				}
			}
		})
	}
}

// A placement that is taken names CPUs that there are, each list at least one.
func FuzzParsePlacement(f *testing.F) {
	f.Add("client=0-1,server=2+3,rest=0")
	f.Add("client=9999999999-1")
	f.Add("client=0-9223372036854775807")
	cpus := []int{0, 1, 2, 3}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePlacement(text, cpus)
		if err != nil {
			return
		}
		for _, list := range [][]int{p.Client, p.Server, p.Rest} {
			if len(list) == 0 || len(list) > len(cpus) {
				t.Errorf("%q: %v", text, p)
			}
			for _, cpu := range list {
				if cpu < 0 || cpu > 3 {
					t.Errorf("%q: %v", text, p)
				}
			}
		}
	})
}
