package lab

import "testing"

// As many Services as a suite may ask for have an address each, all of them
// in the network of Services: kube-proxy and its peers take others for a
// stranger's.
func TestServiceAddresses(t *testing.T) {
	const maximum = 100_000 // suite.maxServices
	seen := map[string]bool{}
	for i := range maximum + 1 { // and the one that is measured
		a := hostOf(serviceNet, i+2)
		if !serviceNet.Contains(a) || seen[a.String()] {
			t.Fatalf("address %d of %v is %v, which is taken or outside", i+2, serviceNet, a)
		}
		seen[a.String()] = true
	}
	if got := hostOf(serviceNet, 1<<16).String(); got != "10.97.0.0" {
		t.Errorf("address 65536 of %v is %s", serviceNet, got)
	}
}
