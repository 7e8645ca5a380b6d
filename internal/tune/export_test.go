package tune

import (
	"bytes"
	"testing"
)

func TestExport(t *testing.T) {
	m, _ := build(t, shapes["laptop"])
	items := planOf(t, m, "smt", "governor", "rings", "offloads", "irq", "rps", "local-ports", "socket-buffers")
	items = append(items, Item{Setting: irqbalance, State: StateChange, Proposal: Proposal{Changes: []Change{{Place{Service, "irqbalance"}, "active", "inactive"}}}})
	items = append(items, Item{Setting: tuned, State: StateChange, Proposal: Proposal{Changes: []Change{{Place{Tuned, "profile"}, "off", "network-latency"}}}})
	for _, format := range ExportFormats {
		var b bytes.Buffer
		if err := Export(&b, format, items); err != nil {
			t.Fatal(err)
		}
		golden(t, "export-"+format+".txt", b.String())
	}
	if err := Export(&bytes.Buffer{}, "udv", items); err == nil {
		t.Error("an unknown format was accepted")
	}
}
