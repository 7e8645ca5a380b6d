package fingerprint

import (
	"context"
	"os"
	"testing"

	"github.com/cnibench/cnibench/internal/host"
)

func TestThisMachine(t *testing.T) {
	env := Collect(context.Background(), os.DirFS("/"), Options{Runner: host.Local{}, Uplink: "lo"})
	private(t, env)
	for _, key := range []string{"kernel.release", "cpu.online", "memory.total", "uplink.mtu", "uplink.offload.tso", "go.version"} {
		if env[key] == "" {
			t.Errorf("no %s", key)
		}
	}
	if err := SameMachine(env, env); err != nil {
		t.Error(err)
	}
	if env := Collect(context.Background(), os.DirFS("/"), Options{Uplink: "no-such-link"}); env["uplink.mtu"] != "" {
		t.Errorf("an interface that is not there has MTU %s", env["uplink.mtu"])
	}
}
