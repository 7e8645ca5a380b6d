package transfer

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseCurl(t *testing.T) {
	tests := []struct {
		name, in string
		want     Transfer
		size     int64
		says     string // of the error
	}{
		{"HTTP", "268435456 0.000342 0.105316\n", Transfer{Seconds: 0.105316, FirstByte: 0.000342}, 268435456, ""},
		{"without an end of line", "1 0.2 0.3", Transfer{Seconds: 0.3, FirstByte: 0.2}, 1, ""},
		{"a comma", "1 0,2 0,3\n", Transfer{Seconds: 0.3, FirstByte: 0.2}, 1, ""},
		{"nothing", "", Transfer{}, 0, "instead of its figures"},
		{"a page", "<html> <body> x\n", Transfer{}, 0, "as the size"},
		{"a negative size", "-1 0.2 0.3\n", Transfer{}, 0, "as the size"},
		{"no first byte", "0 0.000000 0.013\n", Transfer{}, 0, `"0.000000" as a time`},
		{"infinite", "1 0.1 inf\n", Transfer{}, 0, "as a time"},
		{"not a number", "1 NaN 1\n", Transfer{}, 0, "as a time"},
		{"the first byte after the last", "1 2 1\n", Transfer{}, 0, "first byte came after 2 s of 1 s"},
		{"more than is asked for", "1 2 3 4\n", Transfer{}, 0, "instead of its figures"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, size, err := parseCurl(strings.NewReader(tt.in))
			if tt.says != "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Fatalf("error %v, want one that says %q", err, tt.says)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil || size != tt.size {
				t.Errorf("size %d, error %v\n%s", size, err, diff)
			}
		})
	}
}

func FuzzParseCurl(f *testing.F) {
	f.Add([]byte("268435456 0.000342 0.105316\n"))
	f.Add([]byte("1 0,2 1e3"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, size, err := parseCurl(bytes.NewReader(b))
		if err == nil && !(size >= 0 && got.FirstByte > 0 && got.Seconds >= got.FirstByte && got.Seconds < maxSeconds) {
			t.Errorf("%q gives %d bytes, %+v", b, size, got)
		}
	})
}

func TestParseTransferred(t *testing.T) {
	tests := []struct {
		name, in string
		want     int64
		says     string
	}{
		{"OpenSSH 9.2", "Authenticated to 10.0.0.3 ([10.0.0.3]:2222) using \"publickey\".\r\n" +
			"scp: local ftruncate \"/dev/null\": Invalid argument\n" +
			"Transferred: sent 300936, received 268937552 bytes, in 0.6 seconds\r\nBytes per second: sent 1.5, received 2.5\r\n", 268937552, ""},
		{"nothing", "", 0, "did not say"},
		{"refused", "root@10.0.0.3: Permission denied (publickey).\r\n", 0, "did not say"},
		{"cut off", "Transferred: sent 300936, recei", 0, "without the bytes"},
		{"no number", "Transferred: sent 1, received x bytes, in 0.6 seconds", 0, "without the bytes"},
		{"negative", "Transferred: sent 1, received -5 bytes, in 0.6 seconds", 0, "without the bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseTransferred(strings.NewReader(tt.in))
			if got != tt.want || (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%d, %v; want %d and an error that says %q", got, err, tt.want, tt.says)
			}
		})
	}
}

func FuzzParseTransferred(f *testing.F) {
	f.Add([]byte("Transferred: sent 300936, received 268937552 bytes, in 0.6 seconds\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, err := parseTransferred(bytes.NewReader(b)); err == nil && n < 0 {
			t.Errorf("%q gives %d", b, n)
		}
	})
}

// fake is a client whose transfers take a while.
type fake struct {
	took  time.Duration
	fails int // the fetch that fails, from 1
	count int
	write func(to string) error
}

var errFake = errors.New("cut off")

func (f *fake) Fetch(ctx context.Context, to string) (Transfer, error) {
	f.count++
	if f.count == f.fails {
		return Transfer{}, errFake
	}
	if to != "" && f.write != nil {
		return Transfer{}, f.write(to)
	}
	time.Sleep(f.took)
	return Transfer{Seconds: f.took.Seconds(), FirstByte: f.took.Seconds() / 10}, ctx.Err()
}

func TestRepeat(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name             string
		client           fake
		warmup, duration time.Duration
		transfers        int // in the window
		marks            string
		says             string
	}{
		{"many", fake{took: 5 * ms}, 0, 60 * ms, 12, "begin end", ""},
		{"one is longer than the window", fake{took: 50 * ms}, 0, ms, 1, "begin end", ""},
		{"no duration", fake{took: ms}, 0, 0, 1, "begin end", ""},
		{"a warm-up is whole transfers", fake{took: 20 * ms}, ms, ms, 1, "begin end", ""},
		{"the warm-up fails", fake{took: ms, fails: 1}, ms, ms, 0, "", "a transfer of the warm-up: cut off"},
		{"the window fails", fake{took: ms, fails: 3}, 0, time.Hour, 2, "begin end", "transfer 3 of the window: cut off"},
	}
	for _, tt := range tests {
		one := func(t *testing.T) {
			var marks []string
			mark := func(name string) func() { return func() { marks = append(marks, name) } }
			r, err := Repeat(t.Context(), &tt.client, Plan{FileBytes: 1000, Warmup: tt.warmup, Duration: tt.duration, Begin: mark("begin"), End: mark("end")})
			if n := len(r.Transfers); n != tt.transfers {
				t.Errorf("%d transfers, want %d", n, tt.transfers)
			}
			if got := strings.Join(marks, " "); got != tt.marks {
				t.Errorf("marks %q, want %q", got, tt.marks)
			}
			if tt.says != "" {
				if !errors.Is(err, errFake) || err.Error() != tt.says {
					t.Errorf("error %v, want %q", err, tt.says)
				}
				return
			}
			if err != nil || r.Window < tt.duration.Seconds() || r.Window < r.busyTime() {
				t.Errorf("error %v, a window of %v s for %v s of transfers", err, r.Window, r.busyTime())
			}
			if tt.warmup > 0 && tt.client.count <= len(r.Transfers) {
				t.Error("the warm-up had no transfer")
			}
		}
		t.Run(tt.name, func(t *testing.T) { synctest.Test(t, one) })
	}
}

func TestReport(t *testing.T) {
	r := Report{FileBytes: 1000, Window: 1, Transfers: []Transfer{{0.2, 0.03}, {0.4, 0.01}, {0.2, 0.02}}}
	// 3000 bytes in 0.8 s, and a fifth of the window between transfers.
	for what, got := range map[string][2]float64{
		"goodput": {r.Goodput(), 30000}, "gaps": {r.Gaps(), 0.2}, "first byte": {r.TimeToFirstByte(), 0.02},
	} {
		if d := got[0] - got[1]; d > 1e-9 || d < -1e-9 {
			t.Errorf("%s is %v, want %v", what, got[0], got[1])
		}
	}
	r.FirstByte = 0.5
	if r.TimeToFirstByte() != 0.5 {
		t.Error("the report's own time to the first byte does not count")
	}
	if got := (&Report{Transfers: []Transfer{{Seconds: 1}}}).TimeToFirstByte(); got != 0 {
		t.Errorf("the first byte came after %v, which nobody knows", got)
	}
	if got := median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("the median of four is %v", got)
	}
}

func TestContent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "data")
	const size = 1<<20 + 12345
	if err := Write(path, size); err != nil {
		t.Fatal(err)
	}
	if err := Check(path, size); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, size); err == nil {
		t.Error("a file that is there was written over")
	}
	if err := Check(path, size+1); err == nil || err.Error() != "1060921 bytes arrived instead of 1060922" {
		t.Errorf("another size: %v", err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[size-1] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Check(path, size); err == nil || !strings.Contains(err.Error(), "other bytes arrived than were sent") {
		t.Errorf("another byte: %v", err)
	}
	if got := bytes.Count(b, []byte{0}); got > size/128 {
		t.Errorf("%d of %d bytes are zero: compression would help", got, size)
	}
}

func TestVerify(t *testing.T) {
	to := filepath.Join(t.TempDir(), "copy")
	whole := func(to string) error { return Write(to, 100) }
	if err := Verify(t.Context(), &fake{write: whole}, to, 100); err != nil {
		t.Error(err)
	}
	if err := Verify(t.Context(), &fake{write: whole}, to, 101); err == nil || !strings.Contains(err.Error(), "100 bytes arrived instead of 101") {
		t.Errorf("a short file: %v", err)
	}
	if err := Verify(t.Context(), &fake{fails: 1}, to, 100); !errors.Is(err, errFake) {
		t.Errorf("a failed transfer: %v", err)
	}
	if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy is still there: %v", err)
	}
}
