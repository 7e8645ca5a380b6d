package agent

import (
	"errors"
	"testing"
)

func TestLargest(t *testing.T) {
	for _, tt := range []struct{ maximum, path, want int }{
		{1500, 1500, 1500}, {1500, 9000, 1500}, {1500, 1450, 1450}, {9000, 577, 577}, {9000, 576, 576}, {9000, 8999, 8999}, {1500, 575, 0},
	} {
		asked := 0
		got, err := largest(576, tt.maximum, func(size int) (bool, error) { asked++; return size <= tt.path, nil })
		if err != nil || got != tt.want || asked > 16 {
			t.Errorf("up to %d of %d: %d with %d questions, %v, want %d", tt.path, tt.maximum, got, asked, err, tt.want)
		}
	}
	broken := errors.New("broken")
	for n := 1; n < 5; n++ {
		asked := 0
		_, err := largest(576, 9000, func(size int) (bool, error) {
			if asked++; asked == n {
				return false, broken
			}
			return size <= 1450, nil
		})
		if !errors.Is(err, broken) {
			t.Errorf("question %d fails: %v", n, err)
		}
	}
}

// A size that was answered too late for haste is found with patience, which
// nobody needs where haste was right.
func TestCrossing(t *testing.T) {
	for name, tt := range map[string]struct {
		hasty, path, want, patient int // sizes; questions
	}{
		"all":            {1450, 1450, 1450, 0},
		"none":           {0, 500, 0, 1},
		"haste is right": {1400, 1400, 1400, 1},
		"all are late":   {0, 1450, 1450, 2},
		"the last late":  {1449, 1450, 1450, 2},
		"some are late":  {600, 1400, 1400, 13},
	} {
		t.Run(name, func(t *testing.T) {
			patient := 0
			got, err := LargestWhole(576, 1450,
				func(size int) (bool, error) { return size <= tt.hasty, nil },
				func(size int) (bool, error) { patient++; return size <= tt.path, nil })
			if err != nil || got != tt.want || patient > tt.patient {
				t.Errorf("%d with %d patient questions, %v; want %d with %d", got, patient, err, tt.want, tt.patient)
			}
		})
	}
	broken := errors.New("broken")
	if _, err := LargestWhole(576, 1450, func(int) (bool, error) { return false, nil }, func(int) (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("patience fails: %v", err)
	}
}
