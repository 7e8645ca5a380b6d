package node

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBeyond(t *testing.T) {
	before := State{"interface": {"eth0", "lo"}, "rule in": {"ip nat POSTROUTING: masquerade"}}
	after := State{
		"interface": {"cni0", "eth0", "lo"},
		"chain":     {"ip nat FLANNEL-POSTRTG"},
		"rule in":   {"ip nat POSTROUTING: masquerade", "ip nat POSTROUTING: masquerade"},
	}
	want := []string{"chain ip nat FLANNEL-POSTRTG", "interface cni0", "rule in ip nat POSTROUTING: masquerade"}
	if diff := cmp.Diff(want, after.ListAdded(before)); diff != "" {
		t.Error(diff)
	}
	if more := before.ListAdded(after); more != nil {
		t.Errorf("less is no more, got %v", more)
	}
}

// A journal of cnibench 0.9 names rules without their digests.
func TestBeyondOldJournal(t *testing.T) {
	before := State{"rule in": {"ip filter FORWARD: accept"}}
	after := State{"rule in": {`ip filter FORWARD: accept of lo "why: so" #0a1b2c3d`, "ip filter FORWARD: accept #00000000"}}
	want := []string{"rule in ip filter FORWARD: accept #00000000"}
	if diff := cmp.Diff(want, after.ListAdded(before)); diff != "" {
		t.Error(diff)
	}
}

func TestRunErrors(t *testing.T) {
	for _, tt := range []struct{ name, argument, answer string }{
		{"no JSON", "{", ""},
		{"unknown request", `{"do":"dance"}`, `agent node: unknown request "dance"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Run(context.Background(), strings.NewReader(tt.argument), &out); err == nil {
				t.Error("no error")
			}
			var ans Answer
			if tt.answer != "" {
				if err := json.Unmarshal(out.Bytes(), &ans); err != nil {
					t.Fatal(err)
				}
			}
			if ans.Error != tt.answer {
				t.Errorf("answered %q", out.String())
			}
		})
	}
}

// TestReach: a listener is reached, a port that nobody listens on is not, and
// one that accepts but says nothing is not either.
func TestReach(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	port := freePort(t)
	done := make(chan error, 1)
	go func() { done <- listen(ctx, port) }()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	good := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))
	bad := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(freePort(t))))
	failed := reach(ctx, Request{Targets: []string{good, bad, mute.Addr().String()}, Seconds: 1})
	if _, ok := failed[good]; ok || len(failed) != 2 {
		t.Errorf("not reached: %v", failed)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func freePort(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}
