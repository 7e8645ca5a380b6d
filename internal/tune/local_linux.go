package tune

import (
	"github.com/safchain/ethtool"

	"github.com/cnibench/cnibench/internal/host"
)

// LocalMachine returns the machine that this process runs on, in its own namespaces.
func LocalMachine() (*Machine, error) {
	return &Machine{Files: host.Tree("/"), NICs: localNICs{}, Programs: host.Local{}}, nil
}

// localNICs uses the kernel's ioctl, in the caller's network namespace.
type localNICs struct{}

func withEthtool(fn func(e *ethtool.Ethtool) error) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	defer e.Close()
	return fn(e)
}

// Rings implements NICs.
func (localNICs) Rings(nic string) (r Rings, err error) {
	err = withEthtool(func(e *ethtool.Ethtool) error {
		got, err := e.GetRing(nic)
		r = Rings{RX: int(got.RxPending), TX: int(got.TxPending), MaxRX: int(got.RxMaxPending), MaxTX: int(got.TxMaxPending)}
		return err
	})
	return r, err
}

// SetRing implements NICs.
func (localNICs) SetRing(nic, ring string, size int) error {
	return withEthtool(func(e *ethtool.Ethtool) error {
		r, err := e.GetRing(nic)
		if err != nil {
			return err
		}
		if ring == "rx" {
			r.RxPending = uint32(size)
		} else {
			r.TxPending = uint32(size)
		}
		_, err = e.SetRing(nic, r)
		return err
	})
}

// Features implements NICs.
func (localNICs) Features(nic string) (map[string]bool, error) {
	features := map[string]bool{}
	err := withEthtool(func(e *ethtool.Ethtool) error {
		states, err := e.FeaturesWithState(nic)
		for name, s := range states {
			if s.Available && !s.NeverChanged {
				features[name] = s.Active
			}
		}
		return err
	})
	return features, err
}

// SetFeature implements NICs.
func (localNICs) SetFeature(nic, feature string, on bool) error {
	return withEthtool(func(e *ethtool.Ethtool) error { return e.Change(nic, map[string]bool{feature: on}) })
}
