//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// words are in what the tests' pods send each other, to be looked for where others can read.
const words = "words-of-a-testbed-pod"

// seen is what crossed a device, by what carries it: tcp, ipip, udp and its port.
type seen map[string]frames

type frames struct {
	All      int `json:"all"`
	Readable int `json:"readable"` // with words
}

// sniff counts the frames on a device until its input ends, and prints them.
func sniff(device string) error {
	link, err := net.InterfaceByName(device)
	if err != nil {
		return err
	}
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // in network byte order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = errors.Join(
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: link.Index}),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}),
	)
	if err != nil {
		return err
	}
	fmt.Println("listening")
	var deadline atomic.Int64
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		deadline.Store(time.Now().Add(2 * time.Second).UnixNano())
	}()
	counts := seen{}
	frame := make([]byte, 1<<18)
	for {
		n, _, err := unix.Recvfrom(fd, frame, 0)
		end := deadline.Load()
		switch {
		case err == nil:
			counts.add(frame[:n])
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR):
			return err
		case end != 0: // nothing waits any more
			return json.NewEncoder(os.Stdout).Encode(counts)
		}
		if end != 0 && time.Now().UnixNano() > end {
			return json.NewEncoder(os.Stdout).Encode(counts)
		}
	}
}

func (s seen) add(frame []byte) {
	carrier := carrier(frame)
	f := s[carrier]
	f.All++
	if bytes.Contains(frame, []byte(words)) {
		f.Readable++
	}
	s[carrier] = f
}

// carrier is what an Ethernet frame carries, as products.Wire calls it.
func carrier(frame []byte) string {
	const ethernet = 14
	if len(frame) < ethernet+20 || binary.BigEndian.Uint16(frame[12:]) != unix.ETH_P_IP {
		return "other"
	}
	ip := frame[ethernet:]
	header := int(ip[0]&0xf) * 4
	switch protocol := ip[9]; {
	case protocol == unix.IPPROTO_TCP:
		return "tcp"
	case protocol == unix.IPPROTO_IPIP:
		return "ipip"
	case protocol == unix.IPPROTO_UDP && len(ip) >= header+4:
		return fmt.Sprintf("udp %d", binary.BigEndian.Uint16(ip[header+2:]))
	default:
		return fmt.Sprintf("IP protocol %d", protocol)
	}
}

// onWire counts what crosses a node's link, outside of the node, while f runs.
func (p program) onWire(node string, f func()) seen {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := p.command("exec", "--", self, "sniff", node)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	defer input.Close() // should f end the test
	lines := bufio.NewReader(output)
	_, err = lines.ReadString('\n') // listening
	f()
	var counts seen
	err = errors.Join(err, input.Close(), json.NewDecoder(lines).Decode(&counts), cmd.Wait())
	if err != nil {
		p.t.Fatalf("sniff: %v: %s", err, stderr.String())
	}
	return counts
}

// check says what is not as a product's packets must be: in this carrier, and readable there
// unless they are encrypted.
func (s seen) check(wanted string, encrypted bool) error {
	var errs []error
	for _, carrier := range slices.Sorted(maps.Keys(s)) {
		if n := s[carrier].Readable; n > 0 && (encrypted || carrier != wanted) {
			errs = append(errs, fmt.Errorf("%d frames of %s can be read", n, carrier))
		}
	}
	if s[wanted].All == 0 || !encrypted && s[wanted].Readable == 0 {
		errs = append(errs, fmt.Errorf("nothing of the pods in %s; seen: %v", wanted, s))
	}
	return errors.Join(errs...)
}

func TestSeen(t *testing.T) {
	frame := func(protocol byte, payload string) []byte {
		ip := make([]byte, 20+8)
		ip[0], ip[9] = 0x45, protocol
		binary.BigEndian.PutUint16(ip[22:], 51820)
		return append(append(append(make([]byte, 12), 8, 0), ip...), payload...)
	}
	for _, test := range []struct {
		name      string
		frames    [][]byte
		wanted    string
		encrypted bool
		error     string
	}{
		{"plain", [][]byte{frame(6, "GET /"+words)}, "tcp", false, ""},
		{"tunnel", [][]byte{frame(4, words), frame(6, "")}, "ipip", false, ""},
		{"encrypted", [][]byte{frame(17, "x"), frame(6, "x")}, "udp 51820", true, ""},
		{"beside the tunnel", [][]byte{frame(17, "x"), frame(6, words)}, "udp 51820", true, "1 frames of tcp can be read"},
		{"not encrypted", [][]byte{frame(17, words)}, "udp 51820", true, "1 frames of udp 51820 can be read"},
		{"elsewhere", [][]byte{frame(6, words)}, "ipip", false, "nothing of the pods in ipip"},
		{"nothing", [][]byte{{1, 2, 3}}, "tcp", false, "nothing of the pods in tcp"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := seen{}
			for _, f := range test.frames {
				s.add(f)
			}
			err := s.check(test.wanted, test.encrypted)
			if test.error == "" && err != nil || test.error != "" && (err == nil || !strings.Contains(err.Error(), test.error)) {
				t.Errorf("%v: %v", s, err)
			}
		})
	}
}
