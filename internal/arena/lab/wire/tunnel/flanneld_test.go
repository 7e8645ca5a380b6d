//go:build linux

package tunnel

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/arena/lab/wire"
	"github.com/cnibench/cnibench/internal/testutil/wiretest"
)

func TestFlannelConfig(t *testing.T) {
	for name, c := range map[string]struct {
		params wire.Params
		want   string
	}{
		"default": {nil, `{"Backend":{"Type":"vxlan"},"Network":"10.244.0.0/16","SubnetLen":24,"SubnetMin":"10.244.0.0"}`},
		"port":    {wire.Params{"type": "udp", "port": 8285}, `{"Backend":{"Port":8285,"Type":"udp"},"Network":"10.244.0.0/16","SubnetLen":24,"SubnetMin":"10.244.0.0"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, flannelConfig(wiretest.Three(), c.params)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// As flanneld 0.28.4 wrote it.
const subnetEnv = `FLANNEL_NETWORK=10.244.0.0/16
FLANNEL_SUBNET=10.244.1.1/24
FLANNEL_MTU=1472
FLANNEL_IPMASQ=true
`

func TestReadEnv(t *testing.T) {
	env, err := readEnv(strings.NewReader(subnetEnv))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"FLANNEL_NETWORK": "10.244.0.0/16", "FLANNEL_SUBNET": "10.244.1.1/24", "FLANNEL_MTU": "1472", "FLANNEL_IPMASQ": "true"}
	if diff := cmp.Diff(want, env); diff != "" {
		t.Error(diff)
	}
}

func FuzzReadEnv(f *testing.F) {
	f.Add(subnetEnv)
	f.Add("=\n\x00=x\nA=b=c")
	f.Fuzz(func(t *testing.T, text string) {
		env, err := readEnv(strings.NewReader(text))
		if _, unnamed := env[""]; unnamed && err == nil {
			t.Error("a value without a key")
		}
	})
}
