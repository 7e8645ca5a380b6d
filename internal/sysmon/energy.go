package sysmon

import (
	"fmt"
	"io/fs"
	"strings"
)

const powercapFolder = "class/powercap"

// energy samples the energy that the CPU used by its own counters (RAPL). On most machines
// only root may read the counters; virtual machines have none.
func energy() Sampler {
	const metric = "node_rapl_joules"
	var zones []*energyZone // found by the first snapshot
	var findErr error       // why the first snapshot found none
	return Sampler{
		Name:     "energy",
		Scope:    ScopeNode,
		Optional: true,
		Metrics: []Metric{
			{metric, "counter", "joules", "Energy that the zone used since the recording began: package-0, package-0/core, … (powercap's energy_uj; its wrapping is taken out).", []string{"zone"}},
		},
		sample: func(root Root, out *frame) error {
			if zones == nil && findErr == nil {
				zones, findErr = energyZones(root.Sys, out)
			}
			if findErr != nil {
				return findErr
			}
			for _, z := range zones {
				now, err := numberIn(root.Sys, z.folder+"/energy_uj", out)
				if err != nil {
					return err
				}
				out.add(metric, float64(z.addReading(now))/1e6, z.name)
			}
			return nil
		},
	}
}

// energyZone is a counter in µJ that wraps after limit.
type energyZone struct {
	folder, name     string
	limit, last, sum uint64
}

// addReading returns the µJ since the first snapshot.
func (z *energyZone) addReading(now uint64) uint64 {
	if now < z.last {
		z.sum += z.limit - min(z.last, z.limit) + now
	} else {
		z.sum += now - z.last
	}
	z.last = now
	return z.sum
}

// energyZones finds the zones of RAPL. intel-rapl:0 is a package, also on CPUs of AMD, and
// intel-rapl:0:1 a part of that package.
func energyZones(sys fs.FS, out *frame) ([]*energyZone, error) {
	entries, err := fs.ReadDir(sys, powercapFolder)
	if err != nil {
		return nil, err
	}
	zones := []*energyZone{}
	names := map[string]string{} // by the entry's name; a package comes before its parts
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "intel-rapl:") {
			continue // intel-rapl-mmio has the same packages again
		}
		z := &energyZone{folder: powercapFolder + "/" + e.Name()}
		name, err := fs.ReadFile(sys, z.folder+"/name")
		if err != nil {
			return nil, err
		}
		z.name = strings.ToValidUTF8(strings.TrimSpace(string(name)), "\uFFFD")
		if parent := names[e.Name()[:strings.LastIndexByte(e.Name(), ':')]]; parent != "" {
			z.name = parent + "/" + z.name
		}
		names[e.Name()] = z.name
		if z.limit, err = numberIn(sys, z.folder+"/max_energy_range_uj", out); err != nil {
			return nil, err
		}
		if z.last, err = numberIn(sys, z.folder+"/energy_uj", out); err != nil {
			return nil, err
		}
		zones = append(zones, z)
	}
	if len(zones) == 0 {
		return nil, fmt.Errorf("%s: no zone of RAPL: %w", powercapFolder, fs.ErrNotExist)
	}
	return zones, nil
}

func numberIn(root fs.FS, name string, out *frame) (uint64, error) {
	file, err := root.Open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	n, err := readNumber(file, out)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}
