package linux

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// NetNS is a network namespace, held open by its file.
type NetNS struct {
	Name string
	f    *os.File
}

// threadNet is the calling thread's network namespace (namespaces(7)).
const threadNet = "/proc/thread-self/ns/net"

// NewNetNS makes a network namespace with its loopback up. Needs CAP_SYS_ADMIN in
// the user namespace.
func NewNetNS(name string) (*NetNS, error) {
	var n *NetNS
	err := onThread(func() (keep bool, err error) {
		home, err := os.Open(threadNet)
		if err != nil {
			return true, fmt.Errorf("namespace %s: %w", name, err)
		}
		defer home.Close()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return true, fmt.Errorf("namespace %s: unshare: %w", name, err)
		}
		// Back home, so that the thread can be kept: a thread that stays
		// inside would keep the namespace alive, and Go never ends its first.
		defer func() { keep = unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil }()
		f, err := os.Open(threadNet)
		if err != nil {
			return false, fmt.Errorf("namespace %s: %w", name, err)
		}
		n = &NetNS{Name: name, f: f}
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(lo)
		}
		if err != nil {
			err = fmt.Errorf("namespace %s: loopback: %w", name, err)
		}
		return false, err
	})
	if err != nil && n != nil {
		n.Close()
		n = nil
	}
	return n, err
}

// OpenNetNS opens a network namespace by its file, e.g. /proc/PID/ns/net.
func OpenNetNS(name, file string) (*NetNS, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("namespace %s: %w", name, err)
	}
	return &NetNS{Name: name, f: f}, nil
}

// onThread runs fn on an operating-system thread of its own. The thread ends
// with it unless fn says that the thread may be kept.
func onThread(fn func() (keep bool, err error)) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		keep, err := fn()
		if keep {
			runtime.UnlockOSThread()
		}
		done <- err // a goroutine that ends locked takes its thread along
	}()
	return <-done
}

// Do runs fn with the calling goroutine's thread inside the namespace. For
// set-up only: goroutines that fn starts are not inside.
func (n *NetNS) Do(fn func() error) error {
	return onThread(func() (bool, error) {
		home, err := os.Open(threadNet)
		if err != nil {
			return true, err
		}
		defer home.Close()
		if err := unix.Setns(int(n.f.Fd()), unix.CLONE_NEWNET); err != nil {
			return true, fmt.Errorf("enter namespace %s: %w", n.Name, err)
		}
		err = fn()
		restoreErr := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET)
		return restoreErr == nil, err
	})
}

// FD returns the namespace's file descriptor, for moving links into it.
func (n *NetNS) FD() int { return int(n.f.Fd()) }

// Path returns a path under which this process and its children can open the
// namespace, as CNI_NETNS wants it.
func (n *NetNS) Path() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.f.Fd())
}

// Netlink returns a route netlink socket inside the namespace; close it.
func (n *NetNS) Netlink() (*netlink.Handle, error) {
	h, err := netlink.NewHandleAt(netns.NsHandle(n.f.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink in namespace %s: %w", n.Name, err)
	}
	return h, nil
}

// SetSysctl writes a sysctl of the namespace: key as in sysctl(8),
// "net.ipv4.ip_forward". A key that this kernel lacks is an os.ErrNotExist.
func (n *NetNS) SetSysctl(key, value string) error {
	return n.Do(func() error {
		// Dots separate; an interface's own dots are written as slashes.
		path := strings.Map(func(r rune) rune {
			switch r {
			case '.':
				return '/'
			case '/':
				return '.'
			}
			return r
		}, key)
		if err := os.WriteFile(filepath.Join("/proc/sys", path), []byte(value), 0); err != nil {
			return fmt.Errorf("sysctl %s=%s in %s: %w", key, value, n.Name, err)
		}
		return nil
	})
}

// Close lets go of the namespace; it goes away when no process is inside.
func (n *NetNS) Close() error { return n.f.Close() }
