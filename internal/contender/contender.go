// Package contender reads contender files: data only, strictly decoded. It
// runs nothing and knows no arena. Next: read.go, then check.go for the rules and
// kube.go for recipes; the files themselves are in /contenders.
package contender

import (
	"fmt"
	"math"
	"strings"

	"github.com/cnibench/cnibench/internal/unit"
)

// Contender is one pod network in one configuration.
type Contender struct {
	ID       string `yaml:"id"`
	Product  string `yaml:"product"`
	Version  string `yaml:"version,omitempty"` // the studies' version
	Summary  string `yaml:"summary"`
	Homepage string `yaml:"homepage,omitempty"`
	// Studies are the publications that measured it: 2016, 2018, 2019, 2020, 2024, kube-ovn.
	Studies  []string `yaml:"studies,omitempty"`
	Features Features `yaml:"features"`
	Datapath Datapath `yaml:"datapath"`
	Requires Requires `yaml:"requires,omitempty"`
	Lab      Lab      `yaml:"lab"`
	Kube     *Kube    `yaml:"kube,omitempty"`
	// SHA256 is the digest of the file that the contender was read from,
	// hexadecimal; empty: it is from no file.
	SHA256 string `yaml:"-"`
}

// Features is what the product offers in this configuration, by its own
// documentation; the checks of cnibench find out what really holds.
type Features struct {
	Policy     Policy `yaml:"policy"`
	Encryption string `yaml:"encryption"` // none, wireguard, ipsec, nacl
	// KeyRotation says whether the operator's keys can be replaced while the
	// network runs; WireGuard's own session keys do not count.
	KeyRotation          bool     `yaml:"key-rotation"`
	KubeProxyReplacement bool     `yaml:"kube-proxy-replacement"`
	Observability        string   `yaml:"observability,omitempty"`
	IPv6                 bool     `yaml:"ipv6"`
	Architectures        []string `yaml:"architectures"`
	Status               string   `yaml:"status"`            // active, retired
	Retired              string   `yaml:"retired,omitempty"` // the reason, when retired
}

// Policy is the enforcement of NetworkPolicy.
type Policy struct {
	Ingress bool `yaml:"ingress" json:"ingress"`
	Egress  bool `yaml:"egress" json:"egress"`
	L7      bool `yaml:"l7" json:"l7"`
}

// Datapath says in the field's terms how packets travel.
type Datapath struct {
	Attach        string `yaml:"attach"`    // bridge, ptp, ipvlan, macvlan, veth+ebpf, netkit+ebpf, openvswitch, vpp, none; all in check.go
	Transport     string `yaml:"transport"` // routes, vpc-routes, vxlan, ipip, geneve, wireguard, esp, tun-udp, none, …
	Services      string `yaml:"services"`  // kube-proxy, kube-proxy+ebpf, ipvs, ebpf, openvswitch, ovn, vpp, none
	Encapsulation string `yaml:"encapsulation,omitempty"`
	// Overhead is what encapsulation takes from the underlay MTU, bytes a
	// packet over IPv4; Source says where that figure comes from.
	Overhead unit.Bytes `yaml:"overhead"`
	Source   string     `yaml:"overhead-source,omitempty"`
	// MTU is who finds the MTU of pods: auto, the product from the underlay; manual, whoever
	// installs it, else a fixed value holds; unknown; none, no product gives pods their MTU.
	MTU       string `yaml:"mtu"`
	MTUSource string `yaml:"mtu-source,omitempty"` // where that comes from
	// PodMTU is the fixed MTU of pods that the product ships, bytes; 0: pods have the
	// underlay's less Overhead.
	PodMTU unit.Bytes `yaml:"pod-mtu,omitempty"`
	// UnderlayPodMTU says that pods get the underlay's MTU, Overhead or not, so that the path's
	// is for them to discover (RFC 1191).
	UnderlayPodMTU bool `yaml:"underlay-pod-mtu,omitempty"`
}

// Requires is what must be there to run the contender at all.
type Requires struct {
	Kernel   []string `yaml:"kernel,omitempty" json:"kernel,omitempty"`     // kernel features, by the names that probe knows: vxlan, ipvlan, …
	Programs []string `yaml:"programs,omitempty" json:"programs,omitempty"` // beyond those of the pieces
	Underlay string   `yaml:"underlay,omitempty" json:"underlay,omitempty"` // switch or vpc; empty runs on either
}

// Lab is the contender composed of lab pieces, or the reason why there is none.
type Lab struct {
	Attach     *Piece   `yaml:"attach,omitempty"`
	Transport  *Piece   `yaml:"transport,omitempty"`
	Encryption *Piece   `yaml:"encryption,omitempty"` // what the transport's packets are wrapped in
	Extras     []Piece  `yaml:"extras,omitempty"`     // further pieces, set up in order: masquerade, …
	Service    *Piece   `yaml:"service,omitempty"`    // how Service addresses reach their pods; none: no path "service"
	Own        []string `yaml:"own,omitempty"`        // the product's own programs in it
	Reproduced []string `yaml:"reproduced,omitempty"` // what is reproduced, with the source of the configuration
	None       string   `yaml:"none,omitempty"`       // why there is no lab form
	Remedy     string   `yaml:"remedy,omitempty"`     // what the user can do instead
	Held       *Held    `yaml:"held,omitempty"`       // how far the lab form is from its product; nil: not measured
}

// Held is the lab form held against its product on the same machine (docs/dev/fidelity.md). The
// figures are by what factor the lab form's ratio to its own host network differs from the
// product's.
type Held struct {
	Version string  `yaml:"version"` // of the product
	Goodput float64 `yaml:"goodput"` // one TCP stream
	CPU     float64 `yaml:"cpu"`     // CPU per Gbit/s of that stream
	Latency float64 `yaml:"latency"` // median network time, one request in flight
	Cause   string  `yaml:"cause,omitempty"`
	Unsure  bool    `yaml:"unsure,omitempty"` // the intervals of what differs contain 1, so that nothing was shown
}

// MaxDifference is how far a lab form may be from its product without a stated cause.
const MaxDifference = 0.10

// Against returns the version of the product that the lab form was compared with, or "no".
func (l *Lab) Against() string {
	if l.Held == nil {
		return "no"
	}
	return l.Held.Version
}

// DescribeDifference says which figures are further from the product's than MaxApart, and why; "" is none,
// or none beyond their intervals.
func (h *Held) DescribeDifference() string {
	if h == nil || h.Unsure {
		return ""
	}
	var figures []string
	for _, f := range []struct {
		name  string
		value float64
	}{{"goodput", h.Goodput}, {"CPU per Gbit/s", h.CPU}, {"latency", h.Latency}} {
		if math.Abs(f.value-1) > MaxDifference {
			figures = append(figures, fmt.Sprintf("%s %.2f times that of the product", f.name, f.value))
		}
	}
	if figures == nil {
		return ""
	}
	return fmt.Sprintf("%s (%s): %s", strings.Join(figures, ", "), h.Version, h.Cause)
}

// Piece is one datapath piece of package wire with its parameters.
type Piece struct {
	Use    string         `yaml:"use"`
	Params map[string]any `yaml:"with,omitempty"`
}
