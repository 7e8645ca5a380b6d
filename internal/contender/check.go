package contender

import (
	"errors"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/strictyaml"
	"github.com/cnibench/cnibench/internal/text"
)

// The values that a file may use. A word in none of these lists is a mistake more often
// than a new kind of network; a new kind adds its word here.
var (
	studies       = []string{"2016", "2018", "2019", "2020", "2024", "kube-ovn"}
	encryptions   = []string{"none", "wireguard", "ipsec", "nacl"}
	statuses      = []string{"active", "retired"}
	underlays     = []string{"switch", "vpc"}
	attachments   = []string{"none", "bridge", "ptp", "ptp+ebpf", "ipvlan", "macvlan", "veth+ebpf", "netkit+ebpf", "openvswitch", "vpp", "vrouter"}
	transports    = []string{"none", "routes", "vpc-routes", "vxlan", "ipip", "geneve", "stt", "wireguard", "esp", "tun-udp", "vlan", "vpp", "mpls"}
	services      = []string{"none", "kube-proxy", "kube-proxy+ebpf", "ipvs", "ebpf", "openvswitch", "openvswitch+kube-proxy", "ovn", "vpp", "vrouter"}
	mtus          = []string{"auto", "manual", "unknown", "none"}
	architectures = []string{"amd64", "arm64", "arm", "ppc64le", "riscv64", "s390x"}
)

var idForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// problems collects the errors of one file, so that its writer sees all of them at once.
type problems struct {
	file string
	errs []error
}

func (p *problems) add(msg string) {
	p.errs = append(p.errs, &strictyaml.Error{File: p.file, Msg: msg})
}

func (p *problems) want(ok bool, msg string) {
	if !ok {
		p.add(msg)
	}
}

func (p *problems) oneOf(key, value string, known []string) {
	switch {
	case value == "":
		p.add(key + " is missing")
	case !slices.Contains(known, value):
		p.add(text.Unknown(key, value, known).Error())
	}
}

// check finds contradictions between values that decode without error.
func (c *Contender) check(file string) error {
	p := &problems{file: file}
	name := strings.TrimSuffix(path.Base(file), ".yaml")
	p.want(c.ID == name, "id is "+c.ID+", but the file is named "+name)
	p.want(idForm.MatchString(c.ID), "id: use lower-case letters, digits and single hyphens")
	p.want(c.Product != "", "product is missing")
	p.want(c.Summary != "", "summary is missing")
	if c.Homepage != "" {
		u, err := url.Parse(c.Homepage)
		p.want(err == nil && u.Scheme == "https" && u.Host != "", "homepage: want an https address")
	}
	for _, s := range c.Studies {
		p.oneOf("study", s, studies)
	}
	c.Features.check(p)
	c.Datapath.check(p)
	if c.Requires.Underlay != "" {
		p.oneOf("requires.underlay", c.Requires.Underlay, underlays)
	}
	c.Lab.check(p, c.Datapath.Attach == "none")
	if c.Kube != nil {
		c.Kube.check(p)
	}
	return errors.Join(p.errs...)
}

func (f Features) check(p *problems) {
	p.oneOf("features.encryption", f.Encryption, encryptions)
	p.oneOf("features.status", f.Status, statuses)
	switch {
	case f.Status == "retired" && f.Retired == "":
		p.add("features.retired: say why it is retired")
	case f.Status != "retired" && f.Retired != "":
		p.add("features.retired gives a reason, but the status is " + f.Status)
	}
	p.want(len(f.Architectures) > 0, "features.architectures is missing")
	for _, a := range f.Architectures {
		p.oneOf("architecture", a, architectures)
	}
}

func (d Datapath) check(p *problems) {
	p.oneOf("datapath.attach", d.Attach, attachments)
	p.oneOf("datapath.transport", d.Transport, transports)
	p.oneOf("datapath.services", d.Services, services)
	switch {
	case d.Overhead < 0:
		p.add("datapath.overhead: a size cannot be negative")
	case d.Overhead > 0 && d.Source == "":
		p.add("datapath.overhead-source: say where the overhead's figure comes from")
	case d.Overhead > 0 && d.Encapsulation == "":
		p.add("datapath.encapsulation: say what takes the overhead")
	}
	p.oneOf("datapath.mtu", d.MTU, mtus)
	p.want(d.MTU == "none" || d.MTUSource != "", "datapath.mtu-source: say how it is known who finds the MTU of pods")
	p.want(!d.UnderlayPodMTU || d.MTU == "manual" && d.PodMTU == 0 && d.Overhead > 0, "datapath.underlay-pod-mtu: it belongs to mtu: manual with an overhead, and excludes pod-mtu")
	p.want(d.PodMTU == 0 || d.MTU == "manual" && d.PodMTU >= 576, "datapath.pod-mtu: a fixed value is at least 576, and belongs to mtu: manual")
}

// check requires the pieces of the lab form, or the reason why the contender has no lab
// form. A contender that attaches nothing joins no pods, and needs no piece: its endpoints
// run in the nodes' own network.
func (l Lab) check(p *problems, attachesNothing bool) {
	pieces := len(l.Pieces()) > 0
	switch {
	case l.None != "" && pieces:
		p.add("lab: it has pieces and lab.none; keep one")
	case l.None != "":
		p.want(l.Remedy != "", "lab.remedy: say what the user can do instead")
	case l.Remedy != "":
		p.add("lab.remedy belongs to lab.none")
	case attachesNothing:
		p.want(l.Attach == nil && l.Transport == nil, "lab: it joins pods, but datapath.attach is none")
	case l.Attach == nil:
		p.add("lab: it has neither lab.attach nor the reason lab.none")
	default:
		p.want(len(l.Own)+len(l.Reproduced) > 0, "lab.own, lab.reproduced: say what of the product is in it")
	}
	if h := l.Held; h != nil {
		p.want(h.Version != "" && h.Goodput > 0 && h.CPU > 0 && h.Latency > 0, "lab.held: it has a version, goodput, cpu and latency, each by what factor the lab form differs from the product")
		p.want(h.DescribeDifference() == "" || h.Cause != "", "lab.held.cause: say why the lab form differs from the product by more than a tenth")
	}
	for _, piece := range l.Pieces() {
		p.want(piece.Use != "", "lab: a piece without use")
	}
}

// Pieces lists the pieces that the lab form is made of.
func (l Lab) Pieces() []Piece {
	var all []Piece
	for _, piece := range []*Piece{l.Attach, l.Transport, l.Encryption, l.Service} {
		if piece != nil {
			all = append(all, *piece)
		}
	}
	return append(all, l.Extras...)
}
