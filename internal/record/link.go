package record

import (
	"bufio"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// MinToken is the fewest bytes that a shared token may have.
const MinToken = 16

// handshakeTime is how long a side waits for the other's proof, and for sending a message.
const handshakeTime = 5 * time.Second

// ErrToken says that the other side could not prove that it has the token.
var ErrToken = errors.New("the other side has another token; copy one token file to both machines")

// errHungUp is the error of a server that closed the connection without a message.
var errHungUp = errors.New("the other side closed the connection at once: it is no cnibench recorder, or too many clients connect to it; check the address, and try again")

// link is a connection between two recorders that have proved to each other that they have
// the same token. The token is never sent: each side sends a random challenge, and answers
// the other's challenge with an HMAC. Every message contains an HMAC over its direction and
// number, so that nobody in between can add, change, omit or replay a message. Messages are
// not encrypted.
type link struct {
	conn           net.Conn
	in             *bufio.Reader
	key            []byte
	from, to       side
	received, sent uint64 // numbers of messages so far
}

// side is a part of every HMAC, so that a message cannot be sent back to its sender.
type side string

const (
	serverSide side = "server"
	clientSide side = "client"
)

func (s side) other() side {
	if s == serverSide {
		return clientSide
	}
	return serverSide
}

// hello begins the handshake. The client answers the server's hello with its own.
type hello struct {
	Version   int    `json:"cnibench_record"`
	Challenge []byte `json:"challenge"`
	Proof     []byte `json:"proof,omitempty"`
}

const (
	linkVersion   = 2
	challengeSize = 32
	maxLine       = 4 << 10 // of a message
)

// handshake proves to each side that the other has the token.
func handshake(conn net.Conn, own side, token []byte) (*link, error) {
	if err := conn.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return nil, err
	}
	l := &link{conn: conn, in: bufio.NewReaderSize(conn, maxLine), from: own.other(), to: own}
	mine := hello{Version: linkVersion, Challenge: make([]byte, challengeSize)}
	if _, err := rand.Read(mine.Challenge); err != nil {
		return nil, err
	}
	var theirs, answer hello
	var challenges []byte // the server's, then the client's
	if own == serverSide {
		if err := l.write(mine); err != nil {
			return nil, err
		}
		if err := l.readHello(&theirs); err != nil {
			return nil, err
		}
		challenges = append(mine.Challenge, theirs.Challenge...)
		if !hmac.Equal(theirs.Proof, proof(token, "client", challenges)) {
			return nil, ErrToken
		}
		if err := l.write(hello{Version: linkVersion, Proof: proof(token, "server", challenges)}); err != nil {
			return nil, err
		}
	} else {
		if err := l.readHello(&theirs); err != nil {
			return nil, err
		}
		challenges = append(theirs.Challenge, mine.Challenge...)
		mine.Proof = proof(token, "client", challenges)
		if err := l.write(mine); err != nil {
			return nil, err
		}
		if err := l.read(&answer); err != nil {
			if errors.Is(err, io.EOF) {
				return nil, ErrToken // the server closes the connection after a wrong proof
			}
			return nil, err
		}
		if !hmac.Equal(answer.Proof, proof(token, "server", challenges)) {
			return nil, ErrToken
		}
	}
	l.key = proof(token, "messages", challenges)
	return l, conn.SetDeadline(time.Time{})
}

// proof returns an HMAC with the token as its key. The purpose makes the proofs of client
// and server and the key of messages differ. challenges has a fixed length.
func proof(token []byte, purpose string, challenges []byte) []byte {
	m := hmac.New(sha256.New, token)
	m.Write(fmt.Appendf(nil, "cnibench record %d %s\n", linkVersion, purpose))
	m.Write(challenges)
	return m.Sum(nil)
}

func (l *link) readHello(h *hello) error {
	err := l.read(h)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return errHungUp
	}
	if err != nil {
		return fmt.Errorf("the other side is no cnibench recorder: %w; check the address and the port", err)
	}
	if h.Version != linkVersion || len(h.Challenge) != challengeSize {
		return fmt.Errorf("the other side speaks version %d of the pairing, this one %d; use one release of cnibench on both", h.Version, linkVersion)
	}
	return nil
}

// message is a message between recorders.
type message struct {
	Op        string `json:"op"`
	StartOnly bool   `json:"start_only,omitempty"` // with start and running: the ends are not shared
	Error     string `json:"error,omitempty"`      // with failed
	Code      int    `json:"code,omitempty"`       // with ended: the exit code
	MAC       []byte `json:"mac,omitempty"`
}

const (
	opStart   = "start"   // client: begin to record and start your command
	opRunning = "running" // server: my command has started
	opFailed  = "failed"  // server: my command could not be started
	opEnded   = "ended"   // server: my command has ended by itself
	opStop    = "stop"    // client: my command has ended; end yours
)

func (l *link) send(m message) error {
	var err error
	if m.MAC, err = l.mac(m, l.to, l.sent); err != nil {
		return err
	}
	l.sent++
	if err := l.conn.SetWriteDeadline(time.Now().Add(handshakeTime)); err != nil {
		return err
	}
	return l.write(m)
}

func (l *link) receive() (message, error) {
	var m message
	if err := l.read(&m); err != nil {
		return m, err
	}
	want, err := l.mac(m, l.from, l.received)
	if err != nil {
		return m, err
	}
	if !hmac.Equal(m.MAC, want) {
		return message{}, errors.New("a message has a wrong signature: something between the two recorders changes the data")
	}
	l.received++
	return m, nil
}

func (l *link) mac(m message, from side, number uint64) ([]byte, error) {
	m.MAC = nil
	b, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, l.key)
	h.Write([]byte(from))
	h.Write(binary.BigEndian.AppendUint64(nil, number))
	h.Write(b)
	return h.Sum(nil), nil
}

func (l *link) write(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = l.conn.Write(append(b, '\n'))
	return err
}

func (l *link) read(v any) error {
	line, err := l.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return fmt.Errorf("a message of more than %d bytes", maxLine)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}
