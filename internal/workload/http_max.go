package workload

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// HTTPMax finds the highest constant rate of HTTP requests, as `cnibench load
// --find-max` does, and then measures a window at that rate.
type HTTPMax struct {
	// Program is cnibench at the endpoints; "" is the running program.
	Program string
}

// Info implements Workload.
func (HTTPMax) Info() Info {
	rate := HTTPRate{}.Info()
	return Info{
		Name:    "http_max",
		Summary: fmt.Sprintf("the highest constant rate of HTTP/1.1 requests with a p99 of at most %v, then a window at that rate", capacityP99),
		Params:  slices.DeleteFunc(rate.Params, func(p Param) bool { return slices.Contains([]string{"rate", "overload", "stall", "every"}, p.Name) }),
		Metrics: rate.Metrics,
		Search:  capacitySearch,
	}
}

// Drive implements Workload.
func (h HTTPMax) Drive(ctx context.Context, s *Session) (Outcome, error) {
	at := *s
	var err error
	if at.Params, err = Complete(HTTPRate{}.Info(), s.Params); err != nil {
		return Outcome{}, err
	}
	search := at
	search.Raw = Discard{} // the files of the window have the same names
	found, err := HTTPRate(h).Capacity(ctx, &search)
	if err != nil {
		return Outcome{}, fmt.Errorf("http_max: %w", err)
	}
	at.Params = maps.Clone(at.Params)
	at.Params["rate"], at.Params["overload"] = found, true
	return HTTPRate(h).Drive(ctx, &at)
}
