//go:build linux

package underlay

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/unit"
)

// shape holds the link to the line rate. The kernel's token bucket counts
// whole frames without preamble and gap (net/sched/sch_tbf.c). The bucket
// holds a burst of 1 ms and at least one segmentation-offload frame: below
// that the qdisc would have to segment every frame itself.
func shape(h *netlink.Handle, link netlink.Link, rate unit.BitRate) error {
	if rate <= 0 {
		return nil
	}
	const offloadFrame = 64 << 10
	bytesPerSecond := uint64(float64(rate) / 8)
	burst := max(uint32(bytesPerSecond/1000), 2*offloadFrame)
	limit := burst + uint32(float64(bytesPerSecond)*queueSeconds) + offloadFrame
	err := h.QdiscAdd(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       bytesPerSecond,
		Limit:      limit,
		Buffer:     netlink.Xmittime(bytesPerSecond, burst), // in ticks, as tc(8) hands it over
	})
	if err != nil {
		return fmt.Errorf("line rate %s on %s: %w", rate, link.Attrs().Name, err)
	}
	return nil
}

// queueSeconds is how long a frame may wait at a shaped link, as a switch
// port's buffer would let it.
const queueSeconds = 0.004
