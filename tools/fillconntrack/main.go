//go:build linux

// Command fillconntrack plants the cause conntrack-full: it fills the table of tracked
// connections of the network namespace that it is in with connections that nobody made, of
// addresses that are for documentation (RFC 5737), until the kernel refuses one. They count
// as established, so that none is dropped early, and go by themselves after -for. The limit
// nf_conntrack_max is the machine's alone (net/netfilter/nf_conntrack_standalone.c makes it
// read-only in other namespaces), while the count is each namespace's own: filling is how
// one node of a test bed gets a full table.
//
//	testbed node-exec node-1 -- fillconntrack -for 3m
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

func main() {
	hold := flag.Duration("for", 3*time.Minute, "how long the connections stay")
	maximum := flag.Int("most", 1<<20, "connections at most")
	flag.Parse()
	made, err := fill(*maximum, *hold)
	fmt.Printf("%d connections made\n", made)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fillconntrack:", err)
		os.Exit(1)
	}
}

// Of include/uapi/linux/netfilter/nfnetlink_conntrack.h and nf_conntrack_common.h.
const (
	ctNew       = 0                  // IPCTNL_MSG_CT_NEW
	ctaStatus   = 3                  // CTA_STATUS
	established = 1<<1 | 1<<2 | 1<<3 // IPS_SEEN_REPLY, IPS_ASSURED: never dropped early, IPS_CONFIRMED
)

// fill makes connections until the table is full.
func fill(maximum int, hold time.Duration) (made int, err error) {
	for made < maximum {
		switch err := add(made, hold); {
		case errors.Is(err, unix.ENOMEM): // the table is full
			return made, nil
		case err != nil:
			return made, fmt.Errorf("connection %d: %w", made, err)
		}
		made++
	}
	return made, nil
}

// add makes the n-th connection.
func add(n int, hold time.Duration) error {
	from, to := []byte{192, 0, 2, 1}, []byte{198, 51, 100, 1}
	port, other := uint16(1024+n&0x3fff), uint16(20000+n>>14)
	tuple := func(kind int, src, dst []byte, srcPort, dstPort uint16) *nl.RtAttr {
		t := nl.NewRtAttr(unix.NLA_F_NESTED|kind, nil)
		addrs := t.AddRtAttr(unix.NLA_F_NESTED|nl.CTA_TUPLE_IP, nil)
		addrs.AddRtAttr(nl.CTA_IP_V4_SRC, src)
		addrs.AddRtAttr(nl.CTA_IP_V4_DST, dst)
		protocol := t.AddRtAttr(unix.NLA_F_NESTED|nl.CTA_TUPLE_PROTO, nil)
		protocol.AddRtAttr(nl.CTA_PROTO_NUM, nl.Uint8Attr(unix.IPPROTO_TCP))
		protocol.AddRtAttr(nl.CTA_PROTO_SRC_PORT, nl.BEUint16Attr(srcPort))
		protocol.AddRtAttr(nl.CTA_PROTO_DST_PORT, nl.BEUint16Attr(dstPort))
		return t
	}
	state := nl.NewRtAttr(unix.NLA_F_NESTED|nl.CTA_PROTOINFO, nil)
	state.AddRtAttr(unix.NLA_F_NESTED|nl.CTA_PROTOINFO_TCP, nil).AddRtAttr(nl.CTA_PROTOINFO_TCP_STATE, nl.Uint8Attr(nl.TCP_CONNTRACK_ESTABLISHED))
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_CTNETLINK<<8|ctNew, unix.NLM_F_ACK|unix.NLM_F_CREATE)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_INET, Version: nl.NFNETLINK_V0})
	req.AddData(tuple(nl.CTA_TUPLE_ORIG, from, to, port, other))
	req.AddData(tuple(nl.CTA_TUPLE_REPLY, to, from, other, port))
	req.AddData(nl.NewRtAttr(ctaStatus, nl.BEUint32Attr(established)))
	req.AddData(nl.NewRtAttr(nl.CTA_TIMEOUT, nl.BEUint32Attr(uint32(hold.Seconds()))))
	req.AddData(state)
	_, err := req.Execute(unix.NETLINK_NETFILTER, 0)
	return err
}
