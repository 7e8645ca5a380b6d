package workload

import (
	"net/netip"
	"testing"
)

func TestPortsThatAreMoved(t *testing.T) {
	s := &Session{Target: netip.MustParseAddr("10.0.0.1")}
	if got := s.at(5201).String(); got != "10.0.0.1:5201" {
		t.Error(got)
	}
	s.Ports = map[uint16]uint16{5201: 30001}
	for port, want := range map[uint16]string{5201: "10.0.0.1:30001", 5202: "10.0.0.1:5202"} {
		if got := s.at(port).String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
