package sysmon

import (
	"encoding/binary"
	"math"
)

// column holds the values of one series in a compressed form without loss: an hour of
// 1,000 series takes some 6 MB instead of 29 MB. A value is stored as a whole number by
// which a divisor must be divided, and of that number the difference to the previous one.
// The divisors suit the units in which the kernel counts: ticks of 10 ms, ms, µs, ns. Other
// values are stored as their eight bytes.
type column struct {
	labels  map[string]string
	missing Value // value of a snapshot in which the series was missing
	length  int   // number of values
	divisor int   // index of divisors
	last    int64
	bytes   []byte
}

// divisors are in ascending order, and each divides the next. So a value that fits a
// divisor also fits the later ones, unless its whole number gets too large; then the value
// is stored as its eight bytes.
var divisors = [...]float64{1, 100, 1e3, 1e6, 1e9}

// An encoded value begins with one of these numbers, or is zigzag(d)+firstDelta for a
// difference d.
const (
	absentValue = iota
	rawValue    // eight bytes follow
	firstDelta
)

func (c *column) append(v Value) {
	c.length++
	if v.IsAbsent() {
		c.bytes = binary.AppendUvarint(c.bytes, absentValue)
		return
	}
	for d := c.divisor; d < len(divisors); d++ {
		n, fits := scale(v, divisors[d])
		if !fits {
			continue
		}
		if d != c.divisor {
			c.rescale(d)
		}
		delta := n - c.last
		c.bytes = binary.AppendUvarint(c.bytes, uint64(delta<<1^delta>>63)+firstDelta)
		c.last = n
		return
	}
	c.bytes = binary.AppendUvarint(c.bytes, rawValue)
	c.bytes = binary.LittleEndian.AppendUint64(c.bytes, math.Float64bits(float64(v)))
}

// scale returns n with v = n/divisor, if there is such a whole number.
func scale(v Value, divisor float64) (n int64, fits bool) {
	f := math.Round(float64(v) * divisor)
	if math.Abs(f) >= 1<<53 || f == 0 && math.Signbit(float64(v)) {
		return 0, false
	}
	return int64(f), f/divisor == float64(v)
}

// rescale encodes the column again with a larger divisor.
func (c *column) rescale(divisor int) {
	finer := column{labels: c.labels, missing: c.missing, divisor: divisor, bytes: make([]byte, 0, cap(c.bytes))}
	for _, v := range c.values(c.length - 1) { // without the value that append is adding
		finer.append(v)
	}
	finer.length++
	*c = finer
}

// values returns n values of the column; those after its end are absent.
func (c *column) values(n int) []Value {
	values := make([]Value, 0, n)
	var last int64
	for b := c.bytes; len(b) > 0 && len(values) < n; {
		u, size := binary.Uvarint(b)
		b = b[size:]
		switch u {
		case absentValue:
			values = append(values, Absent)
		case rawValue:
			values = append(values, Value(math.Float64frombits(binary.LittleEndian.Uint64(b))))
			b = b[8:]
		default:
			u -= firstDelta
			last += int64(u>>1) ^ -int64(u&1)
			values = append(values, Value(float64(last)/divisors[c.divisor]))
		}
	}
	for len(values) < n {
		values = append(values, Absent)
	}
	return values
}
