package unit

import (
	"math"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	bitRate := func(s string) (float64, error) { v, err := ParseBitRate(s); return float64(v), err }
	bytes := func(s string) (float64, error) { v, err := ParseBytes(s); return float64(v), err }
	seconds := func(s string) (float64, error) { v, err := ParseSeconds(s); return float64(v), err }
	perSecond := func(s string) (float64, error) { v, err := ParsePerSecond(s); return float64(v), err }
	tests := []struct {
		name  string
		parse func(string) (float64, error)
		in    string
		want  float64
		fault string // part of the error; "" for none
	}{
		{"rate with prefix", bitRate, "10G", 10e9, ""},
		{"rate in full", bitRate, "2.5 Gbit/s", 2.5e9, ""},
		{"rate, bit", bitRate, "400Mbit", 400e6, ""},
		{"rate, bps", bitRate, "100kbps", 100e3, ""},
		{"rate, bare", bitRate, "1500", 1500, ""},
		{"rate in bytes", bitRate, "10GB/s", 0, `unknown unit "gb/s"`},
		{"rate, binary", bitRate, "10Gibit/s", 0, `unknown unit "gi"`},
		{"rate, no number", bitRate, "fast", 0, "no number"},
		{"rate, negative", bitRate, "-1G", 0, "no number"},
		{"rate, two points", bitRate, "1.2.3", 0, "no number"},
		{"rate, huge", bitRate, strings.Repeat("9", 308) + "G", 0, "too large"},
		{"size, bare", bytes, "1500", 1500, ""},
		{"size, B", bytes, "350B", 350, ""},
		{"size, KiB", bytes, "4KiB", 4096, ""},
		{"size, K as qperf", bytes, "4K", 4096, ""},
		{"size, kB", bytes, "4kB", 4000, ""},
		{"size, unknown", bytes, "4 pages", 0, `unknown unit "pages"`},
		{"size, empty", bytes, "", 0, "no number"},
		{"time", seconds, "200ms", 0.2, ""},
		{"time, compound", seconds, "1m30s", 90, ""},
		{"time, bare", seconds, "3", 0, "write it as 3s"},
		{"time, negative", seconds, "-3s", 0, "not a duration"},
		{"per second", perSecond, "10k/s", 10e3, ""},
		{"per second, bare", perSecond, "500", 500, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.parse(tt.in)
			switch {
			case tt.fault == "" && err != nil:
				t.Fatalf("%q: %v", tt.in, err)
			case tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)):
				t.Fatalf("%q: error %v, want one with %q", tt.in, err, tt.fault)
			case got != tt.want:
				t.Errorf("%q = %v, want %v", tt.in, got, tt.want)
			}
		})
	}
}

func TestFormat(t *testing.T) {
	tests := []struct {
		value float64
		unit  string
		want  string
	}{
		{17.31e9, "bit/s", "17.3 Gbit/s"},
		{999.96e6, "bit/s", "1 Gbit/s"},
		{123456e9, "bit/s", "123 Tbit/s"},
		{3.2, "bit/s", "3.2 bit/s"},
		{68e-6, "s", "68 µs"},
		{0.0005, "s", "500 µs"},
		{1.5, "s", "1.5 s"},
		{125, "s", "125 s"},
		{3e-11, "s", "0.03 ns"},
		{0, "s", "0 s"},
		{1.2 * (1 << 30), "bytes", "1.2 GiB"},
		{-12 * (1 << 20), "bytes", "-12 MiB"},
		{350, "bytes", "350 B"},
		{1.254, "CPU-s/s", "1.25 CPU"},
		{0.0123, "CPU-s/s", "12.3 mCPU"},
		{0.052, "CPU-s/Gbit", "52 mCPU·s/Gbit"},
		{0.834, "1", "0.83"},
		{0.00421, "1", "0.0042"},
		{12.34, "1", "12.3"},
		{1234, "1", "1,234"},
		{0, "1", "0"},
		{74950.4, "1/s", "74,950/s"},
		{9998, "1/s", "9,998/s"},
		{12.34, "1/s", "12.3/s"},
		{1234567, "count", "1,234,567"},
		{-1234, "count", "-1,234"},
		{7, "count", "7"},
		{3, "W", "3 W"},
		{math.NaN(), "bit/s", Missing},
		{math.Inf(1), "1", Missing},
		{math.NaN(), "W", Missing},
	}
	for _, tt := range tests {
		if got := Format(tt.value, tt.unit); got != tt.want {
			t.Errorf("Format(%v, %q) = %q, want %q", tt.value, tt.unit, got, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"10G", "4KiB", "200ms", "1e9", "..", "10 Gbit/s", "９G"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		check := func(v float64, err error) {
			if err == nil && (v < 0 || math.IsNaN(v) || math.IsInf(v, 0)) {
				t.Errorf("%q gave %v", s, v)
			}
		}
		r, err := ParseBitRate(s)
		check(float64(r), err)
		b, err := ParseBytes(s)
		check(float64(b), err)
		d, err := ParseSeconds(s)
		check(float64(d), err)
		p, err := ParsePerSecond(s)
		check(float64(p), err)
	})
}

func TestParsePercent(t *testing.T) {
	for text, want := range map[string]float64{"5%": 0.05, " 2.5 %": 0.025, "0%": 0, "100%": 1} {
		if got, err := ParsePercent(text); err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "5", "-1%", "101%", "NaN%", "x%"} {
		if got, err := ParsePercent(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

func TestFormatPercent(t *testing.T) {
	for share, want := range map[float64]string{0: "0 %", 0.05: "5 %", 0.12345: "12.3 %", 0.975: "97.5 %", 0.9995: "99.95 %", 1: "100 %", -0.5: "-50 %"} {
		if got := FormatPercent(share); got != want {
			t.Errorf("%v: %q, want %q", share, got, want)
		}
	}
}
