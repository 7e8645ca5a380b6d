package unit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// decimal are the prefixes of rates; binary those of sizes, where "kB" and
// its like are the decimal ones.
var (
	decimal = map[string]float64{"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
	binary  = map[string]float64{
		"": 1, "b": 1,
		"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
		"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
		"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
	}
)

// ParseBitRate reads "10G", "10Gbit/s", "400Mbit", "2.5Gbps" and "1500" (bit
// per second). Prefixes are decimal and their case does not matter; a byte
// rate or a binary prefix is an error.
func ParseBitRate(s string) (BitRate, error) {
	number, suffix := split(s)
	for _, name := range []string{"bit/s", "bps", "bit"} {
		if rest, found := strings.CutSuffix(suffix, name); found {
			suffix = rest
			break
		}
	}
	v, err := scale(s, number, suffix, decimal)
	if err != nil {
		return 0, fmt.Errorf("%w; write a bit rate as 10G, 400Mbit/s or 1500", err)
	}
	return BitRate(v), nil
}

// ParseBytes reads "1500", "350B", "4KiB", "4K" (binary, as iperf3 and qperf
// read it) and "4kB" (decimal).
func ParseBytes(s string) (Bytes, error) {
	number, suffix := split(s)
	v, err := scale(s, number, suffix, binary)
	if err != nil {
		return 0, fmt.Errorf("%w; write a size as 350B, 4KiB or 1500", err)
	}
	return Bytes(v), nil
}

// ParseSeconds reads "200ms", "68us", "1m30s" as time.ParseDuration does; a
// number without a unit is an error, because readers guess it differently.
func ParseSeconds(s string) (Seconds, error) {
	d, err := time.ParseDuration(strings.ReplaceAll(s, " ", ""))
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration; write it as 3s, 200ms or 1m30s", s)
	}
	return Seconds(d.Seconds()), nil
}

// ParsePerSecond reads "10000", "10k" and "10k/s".
func ParsePerSecond(s string) (PerSecond, error) {
	number, suffix := split(s)
	v, err := scale(s, number, strings.TrimSuffix(suffix, "/s"), decimal)
	if err != nil {
		return 0, fmt.Errorf("%w; write a rate as 10000, 10k or 10k/s", err)
	}
	return PerSecond(v), nil
}

// split divides "10 Gbit/s" into "10" and "gbit/s".
func split(s string) (number, suffix string) {
	s = strings.TrimSpace(s)
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == '.') {
		end++
	}
	return s[:end], strings.ToLower(strings.TrimSpace(s[end:]))
}

func scale(whole, number, suffix string, prefixes map[string]float64) (float64, error) {
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%q has no number in front", whole)
	}
	factor, known := prefixes[suffix]
	if !known {
		return 0, fmt.Errorf("%q has an unknown unit %q", whole, suffix)
	}
	if v *= factor; math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is too large", whole)
	}
	return v, nil
}

// ParsePercent reads a share as people write it: "5%" or "5 %" is 0.05. It is from 0
// to 100 %.
func ParsePercent(text string) (float64, error) {
	number, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !isPercent || err != nil || !(f >= 0) || f > 100 {
		return 0, fmt.Errorf("%q: want a percentage from 0%% to 100%%, for example 5%%", text)
	}
	return f / 100, nil
}
