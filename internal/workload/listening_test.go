package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const procNetTCP = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 28191 1 0000000000000000 100 0 0 10 0
   1: 0100007F:D2F0 0100007F:1452 01 00000000:00000000 00:00000000 00000000     0        0 28192 1 0000000000000000 20 4 30 10 -1
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:4D35 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 28200 1 0000000000000000 100 0 0 10 0
`

func TestParseListening(t *testing.T) {
	got, err := parseListening(strings.NewReader(procNetTCP))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[int]bool{5201: true, 19765: true}, got); diff != "" {
		t.Error(diff)
	}
	for name, in := range map[string]string{
		"cut off":    "   0: 0100007F:1451",
		"no port":    "   0: 0100007F 00000000:0000 0A",
		"no hex":     "   0: 0100007F:xyzw 00000000:0000 0A",
		"large port": "   0: 0100007F:FFFFF 00000000:0000 0A",
	} {
		if got, err := parseListening(strings.NewReader(in)); err == nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func FuzzParseListening(f *testing.F) {
	f.Add(procNetTCP)
	f.Fuzz(func(t *testing.T, in string) {
		ports, err := parseListening(strings.NewReader(in))
		for port := range ports {
			if err == nil && (port < 0 || port > 65535) {
				t.Errorf("port %d", port)
			}
		}
	})
}
