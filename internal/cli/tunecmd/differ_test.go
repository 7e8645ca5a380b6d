package tunecmd

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// machinePlan is a node's plan of one setting, whose changes are "kind|name|from".
func machinePlan(t *testing.T, path []deviceValue, changes ...changeValue) string {
	t.Helper()
	p := plan{Schema: "cnibench/tune-plan/1", Machine: machineValue{CPUs: 2, Path: path}, Settings: []planValue{{State: "change", Changes: changes}}}
	p.Settings[0].Name, p.Settings[0].Summary = "offloads", "offloads on"
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The odd node is named with its device and its value; veths, whose names differ everywhere,
// count as one, and what no two nodes have does not count.
func TestComparePlans(t *testing.T) {
	feature := func(name, from string) changeValue {
		return changeValue{"feature", name, "offload " + name, from, "on"}
	}
	bridge := deviceValue{Name: "cni0", Kind: "bridge"}
	said := map[string]string{
		"a": machinePlan(t, []deviceValue{{Name: "flannel.1", Kind: "vxlan"}, bridge, {Name: "veth1", Kind: "veth"}},
			feature("flannel.1 tx-checksum-ip-generic", "off"), feature("veth1 rx-checksum", "on")),
		"b": machinePlan(t, []deviceValue{{Name: "flannel.1", Kind: "vxlan"}, bridge, {Name: "veth7", Kind: "veth"}, {Name: "veth8", Kind: "veth"}},
			feature("flannel.1 tx-checksum-ip-generic", "on"), feature("veth7 rx-checksum", "on"), feature("veth8 rx-checksum", "off")),
		"c": machinePlan(t, []deviceValue{{Name: "flannel.1", Kind: "vxlan"}}, feature("flannel.1 tx-checksum-ip-generic", "on"), feature("eth9 rx-gro", "off")),
		"d": "no JSON",
	}
	got := comparePlans(false)(said)
	want := `Nodes differ

 device cni0: none on c; bridge on a, b
 offload flannel.1 tx-checksum-ip-generic: off on a; on on b, c
 offload veth* rx-checksum: off and on on b; on on a

`
	if diff := cmp.Diff(want, got.Together); diff != "" {
		t.Error(diff)
	}
	if got.Each["d"] != "no JSON" {
		t.Errorf("%q of a node that said no plan", got.Each["d"])
	}
	if diff := cmp.Diff(`2 CPUs, 0 cores, 0 NUMA nodes; pods' path: flannel.1 (vxlan), cni0 (bridge), veth* of pods

Would change

 offloads: offloads on
     offload flannel.1 tx-checksum-ip-generic: off → on
`, got.Each["a"]); diff != "" {
		t.Error(diff)
	}
	asJSON := comparePlans(true)(said)
	list, _ := asJSON.Members["differences"].([]difference)
	if len(list) != 3 || asJSON.Each["a"] != said["a"] || cmp.Diff([]string{"a"}, list[1].Values["off"]) != "" {
		t.Errorf("%+v", list)
	}
	delete(said, "a")
	delete(said, "b")
	if alone := comparePlans(false)(said); alone.Together != "" {
		t.Errorf("of one node: %s", alone.Together)
	}
}
