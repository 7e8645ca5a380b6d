package linux

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseCPUs(t *testing.T) {
	for text, want := range map[string][]int{
		"0-2,5\n": {0, 1, 2, 5}, "": nil, "7": {7}, "3,1-2,2": {1, 2, 3},
	} {
		got, err := ParseCPUs(text, 8191)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
	for _, text := range []string{"3-1", "a", "1-", "0-8192", "-1", "0,"} {
		if got, err := ParseCPUs(text, 8191); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func FuzzParseCPUs(f *testing.F) {
	f.Add("0-8,18-26")
	f.Fuzz(func(t *testing.T, text string) {
		numbers, err := ParseCPUs(text, 8191)
		if err != nil {
			return
		}
		reread, err := ParseCPUs(FormatCPUs(numbers), 8191)
		if diff := cmp.Diff(numbers, reread); diff != "" || err != nil {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	})
}
