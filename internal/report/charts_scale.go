package report

import "slices"

// maxSmaller is how many times smaller the figures of a chart may be than those of a
// neighbouring chart to get the same scale. Smaller bars could not be seen.
const maxSmaller = 10

// oneScale gives the bar charts of a view that show the same figure the same scale.
func oneScale(charts []chart) {
	largest := func(c *chart) float64 {
		maximum := 0.0
		for _, row := range c.Rows {
			maximum = max(maximum, row.Value, slices.Max(append(row.Rounds, 0)))
			if row.High != nil {
				maximum = max(maximum, *row.High)
			}
		}
		return maximum
	}
	for i := range charts {
		c := &charts[i]
		if c.Kind != "bars" {
			continue
		}
		own := largest(c)
		for j := range charts {
			other := &charts[j]
			if j == i || other.Kind != "bars" || other.View != c.View || *other.X != *c.X {
				continue
			}
			if maximum := largest(other); maximum > own && maximum <= maxSmaller*own {
				c.Reach = max(c.Reach, maximum)
			}
		}
	}
}
