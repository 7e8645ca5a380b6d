package cli

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/sysmon"
	"github.com/cnibench/cnibench/internal/testutil/needs"
)

// steppedPair records two commands as a pair while the clock is set, and prints both
// recordings.
const steppedPair = `set -e
cd /tmp
(umask 077; head -c 32 /dev/urandom | base64 >token)
"$0" record --server --listen 127.0.0.1 --token-file token -f server.prom -- sleep 1000 >&2 &
date -s '+1 hour' >&2
"$0" record --connect 127.0.0.1 --token-file token -f client.prom -- \
	sh -c 'sleep 2; date -s "-1 day"; sleep 2; date -s "+2 days"; sleep 2' >&2
wait $!
cat client.prom server.prom`

// The clock of a guest is set while recorders pair and while they record: both
// meet, end together, and their snapshots are as far apart as they were.
func TestGuestClockIsSet(t *testing.T) {
	needs.Guest(t)
	var said bytes.Buffer
	cmd := exec.Command(program, "vm", "--", "sh", "-c", steppedPair, program)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	for i, text := range strings.SplitAfter(string(out), sysmon.EndOpenMetrics) {
		if i == 2 && text == "" {
			break
		}
		recs, err := sysmon.ReadOpenMetrics(strings.NewReader(text))
		if err != nil || len(recs) != 1 || i > 1 {
			t.Fatalf("recording %d: %d, %v\n%s", i, len(recs), err, said.String())
		}
		for k, at := range recs[0].Times[1:] {
			if apart := at.Sub(recs[0].Times[k]); apart <= 0 || apart > 30*time.Minute {
				t.Errorf("recording %d: snapshots %v apart", i, apart)
			}
		}
	}
}
