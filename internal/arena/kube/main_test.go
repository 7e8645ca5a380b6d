package kube

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/testutil/arenatest"
)

var update = flag.Bool("update", false, "write the golden files")

// TestMain lets the test program be this program in a pod.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "agent" {
		switch os.Args[2] {
		case "exec":
			if err := agent.ServeExec(context.Background(), os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		case "have":
			have := agent.Have{Version: "test", SHA256: ownDigest(), Missing: []string{}}
			for _, name := range os.Args[3:] {
				if host.Have(name) != nil {
					have.Missing = append(have.Missing, name)
				}
			}
			_ = json.NewEncoder(os.Stdout).Encode(have)
			return
		case "renew": // the sign is a pod's file
			_, _ = io.Copy(io.Discard, os.Stdin)
			return
		case "on-node":
			onNode(os.Args[4:])
			return
		}
	}
	if arenatest.MainAgent() {
		return
	}
	os.Exit(m.Run())
}

// golden compares with a file under testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

// unsupported is the error's reason and remedy, both of which must be there.
func unsupported(t *testing.T, err error) string {
	t.Helper()
	u := arena.AsUnsupported(err)
	if u == nil {
		t.Fatalf("%v is no *arena.Unsupported", err)
	}
	if u.Reason == "" || u.Remedy == "" {
		t.Errorf("without reason or remedy: %+v", u)
	}
	return u.Error()
}

// usageText is the error's text, which must be one of wrong usage.
func usageText(t *testing.T, err error) string {
	t.Helper()
	var u *UsageError
	if !errors.As(err, &u) {
		t.Fatalf("%v is no *UsageError", err)
	}
	return u.Text
}

// ownDigest is the SHA-256 of this test program; "" if it can't be read.
func ownDigest() string {
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}
