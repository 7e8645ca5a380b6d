package main

import (
	"strings"
	"testing"
)

// iperf3 3.12 that was refused prints an error, no figure, and ends with exit code 0.
func TestIperf3Rate(t *testing.T) {
	got, err := iperf3Rate([]byte(`{"end":{"sum_received":{"bits_per_second":5e9}}}`))
	if got != 5e9 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	for output, says := range map[string]string{
		`{"end":{},"error":"unable to connect to server: Connection refused"}`: "Connection refused",
		`{"end":{}}`: "received nothing",
		`iperf3: `:   "output of iperf3",
	} {
		if _, err := iperf3Rate([]byte(output)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", output, err, says)
		}
	}
}
