package node

import (
	"bytes"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func readSets(s State) error {
	sets, err := netlink.IpsetListAll()
	if err != nil {
		return nil // the kernel lacks ip_set, or has not loaded it: there are no sets
	}
	for _, set := range sets {
		s.add("ipset", set.SetName)
	}
	return nil
}

// setRelease is how long the kernel may keep a set in use whose rules were deleted: it
// frees rules in the background, after a grace period.
const setRelease = 5 * time.Second

func cleanSets(prefixes, keep []string) ([]string, error) {
	if len(prefixes) == 0 {
		return nil, nil
	}
	sets, err := netlink.IpsetListAll()
	if err != nil {
		return nil, nil // there are no sets, as in readSets
	}
	var removed []string
	deadline := time.Now().Add(setRelease)
	for _, set := range sets {
		if !hasPrefix(set.SetName, prefixes) || slices.Contains(keep, set.SetName) {
			continue
		}
		err := netlink.IpsetDestroy(set.SetName)
		for err != nil && time.Now().Before(deadline) {
			time.Sleep(50 * time.Millisecond)
			err = netlink.IpsetDestroy(set.SetName)
		}
		if err != nil {
			return removed, fmt.Errorf("ipset %s: %w", set.SetName, err)
		}
		removed = append(removed, "ipset "+set.SetName)
	}
	return removed, nil
}

// setName returns the name of the ipset with that index, by which rules refer to sets
// (linux/netfilter/ipset/ip_set.h, struct ip_set_req_get_set); "" if there is none.
func setName(index uint16) string {
	const (
		soIPSet   = 83
		byIndex   = 7
		nameBytes = 32
	)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var request struct {
		operation, version uint32
		name               [nameBytes]byte // the index comes in, the name goes out
	}
	for _, version := range []uint32{7, 6} { // of the protocol
		request.operation, request.version = byIndex, version
		*(*uint16)(unsafe.Pointer(&request.name)) = index
		size := uint32(unsafe.Sizeof(request))
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_IP, soIPSet,
			uintptr(unsafe.Pointer(&request)), uintptr(unsafe.Pointer(&size)), 0)
		if errno == 0 {
			name, _, _ := bytes.Cut(request.name[:], []byte{0})
			return string(name)
		}
	}
	return ""
}
