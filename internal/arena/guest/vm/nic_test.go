package vm

import (
	"strings"
	"testing"
)

func TestCheckNICs(t *testing.T) {
	for _, tt := range []struct{ model, says string }{
		{"e1000", ""}, {"virtio-net-pci", ""},
		{"virtio-net", `did you mean "virtio-net-pci"?`},
		{"e1000,netdev=x", "unknown network device"}, // QEMU would take what follows for options
	} {
		c := Config{Argv: []string{"true"}, NICs: []string{tt.model}}
		if err := c.check(); (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.model, err)
		}
	}
	if drivers := nicDrivers(NICModels()); strings.Join(drivers, " ") != "virtio_net e1000" {
		t.Errorf("drivers %q", drivers)
	}
}
