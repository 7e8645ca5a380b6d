package sysmon

import (
	"encoding/binary"
	"math"
)

// column is the values of one series while they are recorded, without loss:
// an hour of 1,000 series takes some 6 MB instead of 29 MB. A value is kept
// as a whole number over a divisor, and of that number the difference to the
// value before. The divisors are those of what the kernel counts in: ticks of
// 10 ms, ms, µs, ns. Anything else is kept as its own eight bytes.
type column struct {
	labels  map[string]string
	missing Value // what stands for a snapshot without a value
	length  int   // values in it
	divisor int   // index of divisors
	last    int64
	bytes   []byte
}

// divisors grow, and all before 10⁶ divide it: what fitted one fits the later
// ones too, but for what gets too large, which is then kept as it is.
var divisors = [...]float64{1, 100, 1e3, 1e6, 1e9}

// What a value in bytes begins with; a difference d is zigzag(d)+firstDelta.
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
		n, fits := scaled(v, divisors[d])
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

// scaled returns n with v = n/divisor, if there is such a whole number.
func scaled(v Value, divisor float64) (n int64, fits bool) {
	f := math.Round(float64(v) * divisor)
	if math.Abs(f) >= 1<<53 || f == 0 && math.Signbit(float64(v)) {
		return 0, false
	}
	return int64(f), f/divisor == float64(v)
}

// rescale encodes the column anew with a finer divisor; a column has few.
func (c *column) rescale(divisor int) {
	finer := column{labels: c.labels, missing: c.missing, divisor: divisor, bytes: make([]byte, 0, cap(c.bytes))}
	for _, v := range c.values(c.length - 1) { // the last is yet to be added
		finer.append(v)
	}
	finer.length++
	*c = finer
}

// values returns the column, with absent values up to n.
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
