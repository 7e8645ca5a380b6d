package report

import "slices"

// alike is how many times smaller a chart's figures may be than those beside it to share
// their scale; smaller ones could not be seen on it.
const alike = 10

// oneScale lets the bars of one view that show the same in the same unit reach equally far.
func oneScale(charts []chart) {
	largest := func(c *chart) float64 {
		most := 0.0
		for _, row := range c.Rows {
			most = max(most, row.Value, slices.Max(append(row.Rounds, 0)))
			if row.High != nil {
				most = max(most, *row.High)
			}
		}
		return most
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
			if most := largest(other); most > own && most <= alike*own {
				c.Reach = max(c.Reach, most)
			}
		}
	}
}
