package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Whatever the file holds, parsing ends, and what it accepts can be written
// and read again.
func FuzzSamples(f *testing.F) {
	good := `{"schema":"cnibench/sample/1","contender":"host","step":"dts","round":1,"verdict":"valid","metrics":{"goodput":1e9}}` + "\n"
	f.Add([]byte(good))
	f.Add([]byte(good + good[:40]))
	f.Add([]byte("\n" + good + "{\n" + good))
	f.Add([]byte(`{"schema":"cnibench/sample/99"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		left := budget(maxMemory)
		p, err := parseSamples(bytes.NewReader(data), &left)
		if errors.Is(err, ErrVersion) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.end > int64(len(data)) || len(p.samples) != len(p.lines) {
			t.Fatalf("%d of %d bytes, %d samples on %d lines", p.end, len(data), len(p.samples), len(p.lines))
		}
		if len(p.bad) == 0 && p.end != int64(len(data)) {
			t.Fatalf("%d of %d bytes and no fault", p.end, len(data))
		}
		for i := range p.samples {
			for name, v := range p.samples[i].Metrics {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("metric %q is %v", name, v)
				}
			}
			line, err := json.Marshal(&p.samples[i])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := decodeSample(line); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	})
}

// What is read of a run.json is written and read again as the same.
func FuzzRun(f *testing.F) {
	text, err := os.ReadFile("testdata/v1/run.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"schema":"cnibench/run/2"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		run, err := decodeRun(text)
		if err != nil {
			return
		}
		var written bytes.Buffer
		if err := encodeRun(&written, run); err != nil {
			t.Fatal(err)
		}
		again, err := decodeRun(written.Bytes())
		if err != nil {
			t.Fatalf("%v:\n%s", err, written.Bytes())
		}
		var twice bytes.Buffer
		if err := encodeRun(&twice, again); err != nil || twice.String() != written.String() {
			t.Errorf("%v:\n%s\n%s", err, written.Bytes(), twice.Bytes())
		}
	})
}

func FuzzHistogram(f *testing.F) {
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	for _, v := range []int64{1, 65_000, 70_000, int64(time.Second)} {
		if err := h.RecordValue(v); err != nil {
			f.Fatal(err)
		}
	}
	data, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(append(data, '\n'))
	f.Add(data[:len(data)/2])
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := parseHistogram(bytes.NewReader(data))
		if err != nil {
			return
		}
		if h.ByteSize() > maxHistogram {
			t.Errorf("%d bytes in memory", h.ByteSize())
		}
		_ = h.ValueAtPercentile(99.999)
	})
}

// Different names make different components, none of which leads elsewhere.
func FuzzComponent(f *testing.F) {
	for _, name := range []string{"", ".", "..", "a/b", "a%2Fb", "host@vpc", "dts"} {
		f.Add(name, "x"+name)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, name := range []string{a, b} {
			c := component(name)
			if c == "" || c == "." || c == ".." || len(c) > maxComponent || bytes.ContainsAny([]byte(c), "/\\\x00@") {
				t.Errorf("%q: %q", name, c)
			}
		}
		if (a == b) != (component(a) == component(b)) {
			t.Errorf("%q and %q: %q and %q", a, b, component(a), component(b))
		}
	})
}
