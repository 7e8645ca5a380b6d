package linux

import "github.com/cnibench/cnibench/internal/host"

// NetNSFiles are a machine's files as a thread inside the namespace reads and writes them:
// /proc/sys/net is the namespace's.
type NetNSFiles struct {
	host.FS
	In *NetNS
}

// ReadFile implements host.FS.
func (f NetNSFiles) ReadFile(name string) (data []byte, err error) {
	err = f.In.Do(func() (err error) {
		data, err = f.FS.ReadFile(name)
		return err
	})
	return data, err
}

// WriteFile implements host.FS.
func (f NetNSFiles) WriteFile(name string, data []byte) error {
	return f.In.Do(func() error { return f.FS.WriteFile(name, data) })
}
