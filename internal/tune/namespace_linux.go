package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/linux"
)

// firstNet is the network namespace of the machine's first process.
const firstNet = "/proc/1/ns/net"

// ThisNamespace returns the network namespace that this thread is in, with its own view of
// /sys. With wholeMachine it also reaches values that only the machine's first namespace
// has. It returns an error in the machine's own namespace, which is not disposable.
func ThisNamespace(wholeMachine bool) (*Machine, error) {
	own, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	first, err := os.Readlink(firstNet)
	if err != nil {
		return nil, err
	}
	if own == first {
		return nil, errors.New("this is the machine's own network namespace; use `cnibench tune apply`, which can be reverted")
	}
	files := namespaceFiles{FS: host.Tree("/"), sys: OwnSys()}
	if wholeMachine {
		first, err := linux.OpenNetNS("first", firstNet)
		if err != nil {
			return nil, err
		}
		files.first = linux.NetNSFiles{FS: files.FS, In: first}
	}
	return &Machine{Files: files, NICs: localNICs{}, Programs: host.Local{}, Namespace: true, WholeMachine: wholeMachine}, nil
}

// OwnSys returns a view of /sys that shows the interfaces of this process' network
// namespace; the mounted /sys shows those of the namespace that it was mounted in. The
// view is mounted nowhere and ends with the process. It is nil if this process may not
// make one.
func OwnSys() host.FS {
	sysfs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil
	}
	defer unix.Close(sysfs)
	if err := unix.FsconfigCreate(sysfs); err != nil {
		return nil
	}
	fd, err := unix.Fsmount(sysfs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	return host.Tree(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// namespaceFiles reads files below /sys/class from the namespace's own view of /sys, and
// the size of RFS's table from the machine's first namespace, since no other has it.
type namespaceFiles struct {
	host.FS
	sys   host.FS
	first host.FS // nil: the first namespace is out of reach
}

// at returns the file system that has the file, and its name there.
func (n namespaceFiles) at(name string) (host.FS, string, error) {
	const class = "/sys/class"
	if n.first != nil && name == sysctlPath(rfsTable) {
		return n.first, name, nil
	}
	if !strings.HasPrefix(name, class+"/") {
		return n.FS, name, nil
	}
	if n.sys == nil {
		return nil, "", fmt.Errorf("%s: no view of /sys of this namespace: %w", name, fs.ErrNotExist)
	}
	return n.sys, strings.TrimPrefix(name, "/sys"), nil
}

func (n namespaceFiles) ReadFile(name string) ([]byte, error) {
	files, name, err := n.at(name)
	if err != nil {
		return nil, err
	}
	return files.ReadFile(name)
}

func (n namespaceFiles) WriteFile(name string, data []byte) error {
	files, name, err := n.at(name)
	if err != nil {
		return err
	}
	return files.WriteFile(name, data)
}

func (n namespaceFiles) ReadDir(name string) ([]string, error) {
	files, name, err := n.at(name)
	if err != nil {
		return nil, err
	}
	return files.ReadDir(name)
}

func (n namespaceFiles) Readlink(name string) (string, error) {
	files, name, err := n.at(name)
	if err != nil {
		return "", err
	}
	return files.Readlink(name)
}
