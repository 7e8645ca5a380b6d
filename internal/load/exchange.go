package load

import "net/netip"

// Exchange is a kind of request with its response: HTTP, TCPRR, TCPCRR or UDPRR.
type Exchange interface {
	// Name is the exchange's name on the command line.
	Name() string
	// network is tcp or udp.
	network() string
	// lasting says that a connection serves one request after the other; otherwise
	// each request has a connection of its own.
	lasting() bool
	// complete checks the sizes and names, and returns the exchange with its defaults.
	complete(target netip.AddrPort) (Exchange, error)
	// protocol returns what one thread needs to write requests and read responses.
	protocol() protocol
}

// protocol writes requests and reads responses; it is used by one thread.
type protocol interface {
	// request returns the bytes of request seq of its connection. They are valid
	// until the next call.
	request(seq uint64) []byte
	// feed takes the next bytes of the response to request seq into r, and
	// says whether it is complete or what is wrong with it.
	feed(r *response, seq uint64, p []byte) (done bool, bad Kind)
	// stray returns the kind of error if bytes arrive while no request is on the way;
	// "" if such bytes are no error.
	stray() Kind
}

// Sizes of a request and a response in bytes, for exchanges of a fixed number of
// bytes. 0 is 1 byte.
type Sizes struct{ Request, Response int }

// MaxMessage is the longest request or response (bytes) over TCP, MaxDatagram over
// UDP: the largest payload of a datagram over IPv4.
const (
	MaxMessage  = 64 << 10
	MaxDatagram = 65507
)

// receiveBuffer is the most bytes of one read. The longest datagram fits in.
const receiveBuffer = 64 << 10

func (s Sizes) complete(maximum int) (Sizes, error) {
	for _, n := range []*int{&s.Request, &s.Response} {
		if *n == 0 {
			*n = 1
		}
		if *n < 1 || *n > maximum {
			return s, wrong("a request or response of %d bytes; from 1 to %d are possible", *n, maximum)
		}
	}
	return s, nil
}

// stream is a protocol of a fixed number of bytes each way.
type stream struct {
	out      []byte
	response int64
}

func newStream(s Sizes) *stream {
	return &stream{out: make([]byte, s.Request), response: int64(s.Response)}
}

func (s *stream) request(uint64) []byte { return s.out }

func (s *stream) feed(r *response, _ uint64, p []byte) (done bool, bad Kind) {
	r.size += int64(len(p))
	if r.size > s.response {
		return false, Malformed
	}
	return r.size == s.response, ""
}

func (s *stream) stray() Kind { return Malformed }
