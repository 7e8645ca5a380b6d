package unit

import (
	"math"
	"strconv"
	"strings"
)

// Missing is what a value that is not there (NaN) is printed as; never a zero.
const Missing = "–"

// prefix is a multiple of a unit and how it is written.
type prefix struct {
	factor float64
	text   string
}

// Largest first; the last one also takes what is smaller still.
var (
	bitRates   = []prefix{{1e12, "Tbit/s"}, {1e9, "Gbit/s"}, {1e6, "Mbit/s"}, {1e3, "kbit/s"}, {1, "bit/s"}}
	sizes      = []prefix{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, "B"}}
	times      = []prefix{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}}
	cpus       = []prefix{{1, "CPU"}, {1e-3, "mCPU"}}
	cpuPerGbit = []prefix{{1, "CPU·s/Gbit"}, {1e-3, "mCPU·s/Gbit"}}
)

// String gives three significant digits: "17.3 Gbit/s".
func (r BitRate) String() string { return formatPrefixed(float64(r), bitRates, "bit/s") }

// String gives three significant digits and a binary multiple: "1.2 GiB".
func (b Bytes) String() string { return formatPrefixed(float64(b), sizes, "B") }

// String gives three significant digits: "68 µs".
func (s Seconds) String() string { return formatPrefixed(float64(s), times, "s") }

// String gives whole events where there are many, so that 9,998/s is not
// taken for the 10,000/s asked for; else three significant digits.
func (p PerSecond) String() string {
	if isMissing(float64(p)) {
		return Missing
	}
	return count(float64(p)) + "/s"
}

// Format prints a value of the metric catalogue in its unit, e.g.
// Format(0.052, "CPU-s/Gbit") is "52 mCPU·s/Gbit". An unknown unit is written
// as it is.
func Format(value float64, unit string) string {
	if isMissing(value) {
		return Missing
	}
	switch unit {
	case "bit/s":
		return BitRate(value).String()
	case "bytes":
		return Bytes(value).String()
	case "s":
		return Seconds(value).String()
	case "1/s":
		return PerSecond(value).String()
	case "1/GiB":
		return significant(value) + "/GiB"
	case "CPU-s/s":
		return formatPrefixed(value, cpus, "CPU")
	case "CPU-s/Gbit":
		return formatPrefixed(value, cpuPerGbit, "CPU·s/Gbit")
	case "1":
		return Ratio(value)
	case "count":
		return count(value)
	}
	return significant(value) + " " + unit
}

// Ratio prints a ratio with two decimals, "0.83"; below 0.1 with two
// significant digits, from 10 with fewer decimals.
func Ratio(v float64) string {
	size := math.Abs(v)
	switch {
	case isMissing(v):
		return Missing
	case v == 0:
		return "0"
	case size >= 100:
		return count(v)
	case size >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case size >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return formatDigits(v, 2)
}

// Plural is a number of things: "1 round", "3 rounds".
func Plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}

func isMissing(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// formatPrefixed rounds before it chooses the multiple: 999.96 Mbit/s is 1 Gbit/s.
func formatPrefixed(v float64, prefixes []prefix, zero string) string {
	switch {
	case isMissing(v):
		return Missing
	case v == 0:
		return "0 " + zero
	}
	for i, p := range prefixes {
		scaled, _ := strconv.ParseFloat(strconv.FormatFloat(v/p.factor, 'g', 3, 64), 64)
		if math.Abs(scaled) >= 1 || i == len(prefixes)-1 {
			return significant(v/p.factor) + " " + p.text
		}
	}
	return Missing
}

// significant gives three significant digits without trailing zeros, whole
// numbers in full.
func significant(v float64) string {
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return formatDigits(v, 3)
}

// formatDigits gives digits significant digits, never an exponent, no trailing zeros.
func formatDigits(v float64, digits int) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// count gives thousands their separators: "74,950".
func count(v float64) string {
	if math.Abs(v) < 1000 {
		return significant(v)
	}
	text := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	var b strings.Builder
	if v < 0 {
		b.WriteByte('-')
	}
	for i, digit := range text {
		if i > 0 && (len(text)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}

// FormatPercent returns a share with three digits: "12.5 %"; near 100 % with four, so that
// 99.95 % is not 100 %.
func FormatPercent(share float64) string {
	digits := 3
	if math.Abs(share) >= 0.99 {
		digits = 4
	}
	return strconv.FormatFloat(share*100, 'g', digits, 64) + " %"
}
