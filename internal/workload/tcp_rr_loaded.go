package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/result"
)

// TCPRRLoaded is TCPRR while bulk TCP connections send from client to server: what a short
// request waits for behind a large transfer.
type TCPRRLoaded struct{ RR }

// NewTCPRRLoaded returns the workload.
func NewTCPRRLoaded() TCPRRLoaded {
	rr := TCPRR()
	rr.name = "tcp_rr_loaded"
	return TCPRRLoaded{rr}
}

// overhang is how long the bulk connections send beyond the requests, so that no request is
// answered on an idle path.
const overhang = 5 * time.Millisecond

// Info implements Workload.
func (w TCPRRLoaded) Info() Info {
	info := w.RR.Info()
	info.Summary = "requests and responses on open TCP connections while bulk TCP connections send from client to server; round-trip times, and the goodput beside them"
	info.Params = append(info.Params,
		Param{result.FlowsParam, 1, "bulk TCP connections beside the requests; 0: none, to compare with"},
		bulkBandwidthParam,
		Param{"flow_port", 5301, "port of the server of the bulk connections"},
	)
	info.Metrics = append(info.Metrics, result.LoadGoodput)
	return info
}

// Ports implements Serving.
func (w TCPRRLoaded) Ports(p Params) []arena.Port {
	return append(w.RR.Ports(p), ports(arena.TCP, p.Int("flow_port"), 1)...)
}

// Drive implements Workload.
func (w TCPRRLoaded) Drive(ctx context.Context, s *Session) (Outcome, error) {
	return driveInOneSlice(ctx, s, w)
}

// Open implements Sliceable.
func (w TCPRRLoaded) Open(ctx context.Context, s *Session) (Slicer, error) {
	bulk := TCPBulk()
	bulk.Program = w.Program
	beside, flows := *s, s.Params.Int(result.FlowsParam)
	var err error
	beside.Params, err = Complete(bulk.Info(), map[string]any{"streams": max(1, flows), "port": s.Params.Int("flow_port"), result.BandwidthParam: s.Params.String(result.BandwidthParam)})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.name, err)
	}
	beside.Raw = prefixed{s.Raw, "flow-"}
	requests, err := w.RR.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	if flows == 0 {
		return &loadedSlicer{requests, noFlow{}}, nil
	}
	flow, err := bulk.Open(ctx, &beside)
	if err != nil {
		_, closeErr := requests.Close(nil)
		return nil, errors.Join(err, closeErr)
	}
	return &loadedSlicer{requests, flow}, nil
}

// prefixed is a Raw whose files' names have a prefix.
type prefixed struct {
	Raw
	prefix string
}

func (p prefixed) Create(name string) (io.WriteCloser, error) { return p.Raw.Create(p.prefix + name) }

// noFlow stands for the bulk connections of an idle path: nothing is sent, and 0 received.
type noFlow struct{}

func (noFlow) Slice(context.Context, time.Duration, time.Duration, func(), func()) (Slice, error) {
	return Slice{Metrics: map[string]float64{result.Goodput: 0}}, nil
}

func (noFlow) Close(func(slice int) bool) (Outcome, error) {
	return Outcome{Metrics: map[string]float64{result.Goodput: 0}}, nil
}

// loadedSlicer loads the path with requests and a flow at once.
type loadedSlicer struct{ requests, flow Slicer }

// Slice implements Slicer: the window is that of the requests.
func (l *loadedSlicer) Slice(ctx context.Context, lead, length time.Duration, begin, end func()) (Slice, error) {
	flowCtx, endFlow := context.WithCancel(ctx)
	defer endFlow()
	var flow Slice
	var flowErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		flow, flowErr = l.flow.Slice(flowCtx, lead, length+overhang, nil, nil)
	}()
	slice, err := l.requests.Slice(ctx, lead, length, begin, end)
	if err != nil {
		endFlow() // its error is a consequence
		<-done
		return slice, err
	}
	<-done
	if flowErr != nil {
		return slice, flowErr
	}
	slice.Faults = append(slice.Faults, flow.Faults...)
	slice.Metrics[result.LoadGoodput] = flow.Metrics[result.Goodput]
	return slice, nil
}

// Close implements Slicer.
func (l *loadedSlicer) Close(isUsed func(slice int) bool) (Outcome, error) {
	flow, flowErr := l.flow.Close(isUsed)
	out, err := l.requests.Close(isUsed)
	if goodput, has := flow.Metrics[result.Goodput]; has && out.Metrics != nil {
		out.Metrics[result.LoadGoodput] = goodput
	}
	return out, errors.Join(err, flowErr)
}
