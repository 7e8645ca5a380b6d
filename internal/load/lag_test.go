package load

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLag(t *testing.T) {
	type send struct{ planned, freeAt, sent int64 } // ms
	tests := []struct {
		name  string
		sends []send
		own   []int64 // ms
		late  int
	}{
		{"on time", []send{{10, 5, 10}, {11, 6, 11}}, []int64{0, 0}, 0},
		{"a server that stalled", []send{{10, 200, 200}, {11, 201, 201}, {12, 202, 202}}, []int64{0, 0, 0}, 0},
		{"an absence with two connections free, and its backlog", []send{{10, 5, 410}, {20, 6, 410}, {30, 411, 411}, {400, 412, 412}, {412, 412, 412}}, []int64{400, 390, 381, 12, 0}, 4},
		{"what is planned while the backlog is worked off", []send{{10, 5, 410}, {20, 411, 411}, {405, 430, 430}, {420, 431, 431}}, []int64{400, 391, 25, 11}, 4},
		{"caught up, then the server stalls", []send{{10, 5, 410}, {411, 5, 411}, {412, 612, 612}}, []int64{400, 0, 0}, 1},
		{"a short absence in the backlog of a server", []send{{10, 200, 203}, {11, 204, 204}, {12, 205, 205}}, []int64{3, 3, 3}, 0},
		{"two absences in a row add up", []send{{10, 5, 110}, {20, 111, 111}, {30, 112, 212}, {40, 213, 213}}, []int64{100, 91, 182, 173}, 4},
	}
	const ms = 1e6
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var l lag
			var own []int64
			n := 0
			for _, s := range tt.sends {
				o := l.own(s.planned*ms, s.freeAt*ms, s.sent*ms)
				own = append(own, o/ms)
				if late(o, (s.sent-s.planned)*ms) {
					n++
				}
			}
			if d := cmp.Diff(tt.own, own); d != "" || n != tt.late {
				t.Errorf("%d late, want %d; own delays -want +got:\n%s", n, tt.late, d)
			}
		})
	}
}
