package diagnose

import (
	"fmt"
	"strings"
)

// Line is a line of the short form: what was looked at, whether it is sound, and the figure.
type Line struct {
	What string `json:"what"` // reach, DNS, Services, size, speed, loss
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// Doctor returns the short form of a case: what a colleague asks first.
func Doctor(c *Case) (list []Line) {
	add := func(what string, ok bool, format string, args ...any) {
		list = append(list, Line{what, ok, fmt.Sprintf(format, args...)})
	}
	all, broken := 0, []string{}
	for i := range c.Paths {
		p := &c.Paths[i]
		probe, tried := p.Probes[Connect]
		if !tried {
			continue
		}
		all++
		if probe.Figures[Failed] >= 0.9 {
			broken = append(broken, p.From+" → "+p.To)
		}
	}
	if all > 0 {
		text := fmt.Sprintf("%d of %d paths: nodes, pods, both ways", all-len(broken), all)
		if len(broken) > 0 {
			text += "; no connection " + strings.Join(broken, ", ")
		}
		add("reach", len(broken) == 0, "%s", text)
	}
	if p := c.path(DNS, false); p != nil {
		f := p.Probes[Lookup].Figures
		add("DNS", f[Failed]+f[Late] < lateLookup && f[P50] < slowLookup, "%s a name, %s lost or asked twice", seconds(f[P50]), percent(f[Failed]+f[Late]))
	}
	if p50, ok := c.figure(Service, false, Connect, P50); ok {
		add("Services", !c.slowConnect(Service, false), "%s a new connection", seconds(p50))
	}
	fits, sizes := true, []string{}
	for _, back := range directions {
		if whole, ok := c.figure(PodPod, back, Size, Whole); ok {
			fits = fits && int(whole) >= c.podMTU(back)
			sizes = append(sizes, fmt.Sprintf("%s: %.0f of %d bytes", c.direction(back), whole, c.podMTU(back)))
		}
	}
	if len(sizes) > 0 {
		add("size", fits, "packets that cross whole, %s", strings.Join(sizes, "; "))
	}
	worst, measured := 0.0, false
	for _, back := range directions {
		if share, ok := c.lossShare(PodPod, back); ok {
			worst, measured = max(worst, share), true
		}
	}
	if measured {
		add("loss", worst <= minLoss, "at most %s between pods", percent(worst))
	}
	usual := true
	for _, back := range directions {
		usual = usual && !c.slowBulk(back) && !c.slowRTT(back)
	}
	if _, words := c.usual(); len(words) > 0 {
		add("speed", usual, "%s", words)
	}
	return list
}
