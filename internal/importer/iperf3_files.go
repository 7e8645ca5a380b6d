package importer

import (
	"context"
	"errors"
	"fmt"

	"github.com/cnibench/cnibench/internal/result"
)

// readIperf3 reads plain outputs of `iperf3 --json`, a test a file: FOLDER/CONTENDER/….json
// in any folders. What was tested is in the files: protocol and number of streams.
func readIperf3(ctx context.Context, src *source, opt Options) (*imported, error) {
	return readFigures(ctx, src, opt, "iperf3", []string{".json", ".stdout"}, parseIperf3File)
}

func parseIperf3File(data []byte) ([]figure, error) {
	t, err := decodeIperf3(data)
	protocol := ""
	switch {
	case err != nil:
		return nil, err
	case t.Start.Test.Protocol != "":
		protocol = t.Start.Test.Protocol
	case t.Error != "":
		return nil, &lineError{0, fmt.Errorf("iperf3 says: %s; which test it was is unknown", t.Error)}
	default:
		return nil, &lineError{0, errors.New("no test_start; it is no output of iperf3 --json")}
	}
	f := figure{test: protocol + "_STREAM", path: "pod", streams: min(max(t.Start.Test.Streams, 1), 1024),
		unknown: []string{"path", "kernel of the server", "CPU of the nodes"}}
	f.fill = func(s *sample, file string) {
		udp := protocol == "UDP"
		if udp {
			s.required = append(s.required, result.Loss)
		}
		t.apply(s, file, f.streams, udp)
		if s.release != "" {
			s.Kernel = upstream(s.release)
		}
	}
	return []figure{f}, nil
}
