package record

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLongFlags(t *testing.T) {
	takesValue := func(flag string) bool {
		return !slices.Contains([]string{"server", "sync-start-only", "version", "help", "plain"}, flag)
	}
	for _, tt := range []struct{ args, want string }{
		{"", ""},
		{"ping -c 10 host", "ping -c 10 host"},
		{"-d 3 -f a.prom -- grep -f x", "--delay 3 --file a.prom -- grep -f x"},
		{"-s -mst 1704067200000 -l benchmark=sample -dac 5 -- iperf3 -s", "--server --metrics-start-time 1704067200000 --label benchmark=sample --delay-after-command 5 -- iperf3 -s"},
		{"-c localhost -sp 81 -sso echo -sso", "--connect localhost --sync-port 81 --sync-start-only echo -sso"},
		{"-i -s -dbc=2 date", "--instance -s --delay-before-command=2 date"}, // the instance is called -s
		{"--delay 2 --file=x -plain date", "--delay 2 --file=x -plain date"},
		{"-help", "--help"},
		{"-f", "--file"},
	} {
		got := LongFlags(strings.Fields(tt.args), takesValue)
		if diff := cmp.Diff(strings.Fields(tt.want), got); diff != "" && tt.want != "" {
			t.Errorf("%s: %s", tt.args, diff)
		}
	}
}

func TestEnvironment(t *testing.T) {
	var got []string
	set := func(flag, value string) error {
		if value == "bad" {
			return fmt.Errorf("it is bad")
		}
		got = append(got, flag+" "+value)
		return nil
	}
	err := Environment([]string{"SE_DELAY_BEFORE_COMMAND=1", "SE_DELAY=5", "PATH=/bin", "SE_FILE=", "SE_SERVER=yes", "SE_SYNC_START_ONLY=1",
		"SE_LABEL_Env=a=b", "SE_LABEL_x=", "SE_METRICS_START_TIME=9"}, set)
	want := []string{"label Env=a=b", "label x=", "metrics-start-time 9", "delay 5", "delay-before-command 1", "server true"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, variable := range []string{"SE_DELAY", "SE_FILE"} {
		if err := Environment([]string{variable + "=bad"}, set); err == nil || err.Error() != variable+": it is bad" {
			t.Errorf("error %v", err)
		}
	}
}

func TestLabel(t *testing.T) {
	for _, tt := range []struct{ pair, name, value, err string }{
		{"a=b", "a", "b", ""},
		{"A.b-C=d=e", "a_b_c", "d=e", ""},
		{"a=", "a", "", ""},
		{"a", "", "", "write NAME=VALUE"},
		{"=b", "", "", "write NAME=VALUE"},
	} {
		name, value, err := Label(tt.pair)
		if name != tt.name || value != tt.value || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %q %q %v", tt.pair, name, value, err)
		}
	}
}

func TestGroups(t *testing.T) {
	for _, tt := range []struct{ text, want, err string }{
		{"", "", ""},
		{"cni=calico.*|felix,load=^iperf3 -c {1,3},x", "cni calico.*|felix;load ^iperf3 -c {1,3},x", ""},
		{"a=b=c", "a b=c", ""},
		{"a", "", "write NAME=REGEXP"},
		{"=a", "", "write NAME=REGEXP"},
		{"a=b,a=c", "", "group a appears twice"},
		{"a=(", "", "group a: error parsing regexp"},
	} {
		groups, err := Groups(tt.text)
		if err != nil {
			if tt.err == "" || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v", tt.text, err)
			}
			continue
		}
		var got []string
		for _, g := range groups {
			got = append(got, g.Name+" "+g.Match.String())
		}
		if strings.Join(got, ";") != tt.want || tt.err != "" {
			t.Errorf("%s: %q", tt.text, got)
		}
	}
	if groups, err := Groups(DefaultGroups); err != nil || len(groups) != 2 {
		t.Error(groups, err)
	}
}
