package sysmon

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestColumn(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []Value
		bytes  int // at most
	}{
		{"empty", nil, 0},
		{"constant", []Value{5, 5, 5, 5}, 4},
		{"absent", []Value{Absent, 1, Absent, Absent, 2, Absent}, 6},
		{"ticks", []Value{1, 1.01, 1.02, 2.5, 1}, 8},
		{"milliseconds after ticks", []Value{1, 1.01, 1.011}, 5},
		{"microseconds, fallen back", []Value{0.000001, 3, 0.5, 0}, 15},
		{"large", []Value{18446744073709551615, 9007199254740991, 9007199254740993, -9007199254740991}, 36},
		{"odd", []Value{math.Pi, 1.0 / 3, 5e-324, -0.1, Value(math.Copysign(0, -1)), Value(math.Inf(1))}, 64},
		{"odd, then ticks, then ns", []Value{math.Pi, 0.01, 1e300, 0.000000001, Absent, 7}, 40},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c column
			for _, v := range tt.values {
				c.append(v)
			}
			want := append(tt.values[:len(tt.values):len(tt.values)], Absent)
			if diff := cmp.Diff(want, c.values(len(want)), sameBits); diff != "" {
				t.Error(diff)
			}
			if c.length != len(tt.values) || len(c.bytes) > tt.bytes {
				t.Errorf("%d values in %d bytes, want at most %d", c.length, len(c.bytes), tt.bytes)
			}
		})
	}
}

var sameBits = cmp.Comparer(func(a, b Value) bool {
	return math.Float64bits(float64(a)) == math.Float64bits(float64(b)) || a.IsAbsent() && b.IsAbsent()
})

// FuzzColumn: what goes in comes out, bit by bit.
func FuzzColumn(f *testing.F) {
	f.Add([]byte("01234567abcdefgh"), uint8(0))
	f.Add(binary.LittleEndian.AppendUint64(nil, math.Float64bits(12.34)), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, how uint8) {
		var c column
		var want []Value
		for ; len(b) >= 8; b = b[8:] {
			u := binary.LittleEndian.Uint64(b)
			v := Value(math.Float64frombits(u))
			if how > 0 {
				v = Value(float64(int32(u)) / divisors[int(u>>32)%min(int(how), len(divisors))])
			}
			c.append(v)
			want = append(want, v)
		}
		if diff := cmp.Diff(want, c.values(len(want)), sameBits); len(want) > 0 && diff != "" {
			t.Fatal(diff)
		}
	})
}
