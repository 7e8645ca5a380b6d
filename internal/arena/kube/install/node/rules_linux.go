package node

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/google/nftables/xt"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/contender"
)

// packetRule is a rule of nftables or iptables: the parts by which a reader recognises the
// rule, and a digest of the whole rule.
type packetRule struct {
	table, chain string
	to           string // the chain or target; "" if the rule has none
	comments     []string
	interfaces   []string // by which packets arrive or leave; "x*" for a prefix
	sets         []string // ipsets
	ports        []string // to which packets go: "udp/6081"
	digest       string   // of the rule without its counters
}

// String returns the rule's name in a State.
func (r packetRule) String() string {
	text := r.table + " " + r.chain + ": " + cmp.Or(r.to, "no verdict")
	for _, name := range r.interfaces {
		text += " of " + name
	}
	for _, name := range r.sets {
		text += " of set " + name
	}
	for _, comment := range r.comments {
		text += fmt.Sprintf(" %q", comment)
	}
	return text + digestMark + r.digest
}

// ofKubernetes reports whether the rule is kube-proxy's or kubelet's, or leads to their
// chains. Such rules stay, and change with the Services.
func (r packetRule) ofKubernetes() bool {
	return ofKubernetes(r.chain) || ofKubernetes(r.to) || strings.HasSuffix(r.table, " kube-proxy")
}

// belongsTo reports whether the rule is the product's, by the chain that it leads to, its
// comment, or an interface or set of the product; on a node that somebody has looked at
// before also by its target and port.
func (r packetRule) belongsTo(left contender.Leftovers, lookedAt bool) bool {
	begins := func(prefixes []string) func(string) bool {
		return func(name string) bool { return hasPrefix(name, prefixes) }
	}
	nameless := func(c contender.Rule) bool {
		return strings.EqualFold(r.to, c.Target) && (c.Port == "" || slices.Contains(r.ports, c.Port))
	}
	switch {
	case hasPrefix(r.to, left.Chains):
		return true
	case r.ofKubernetes():
		return false
	}
	return slices.ContainsFunc(r.comments, begins(left.Comments)) ||
		slices.ContainsFunc(r.sets, begins(left.Sets)) ||
		slices.ContainsFunc(r.interfaces, func(name string) bool { return matches(name, left.Interfaces) }) ||
		lookedAt && slices.ContainsFunc(left.Rules, nameless)
}

// matches reports whether the name matches one of the patterns of path.Match.
func matches(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, name); return ok })
}

// digestOf distinguishes rules whose names would be equal.
func digestOf(b []byte) string { return fmt.Sprintf("%.4x", sha256.Sum256(b)) }

// nftRule reads a rule of nftables, or of an iptables that writes into nftables.
func nftRule(r *nftables.Rule) packetRule {
	known := packetRule{table: tableName(r.Table), chain: r.Chain.Name, comments: userComments(r.UserData)}
	var content bytes.Buffer
	loaded, protocol := "", ""
	for _, e := range r.Exprs {
		if _, counts := e.(*expr.Counter); counts {
			continue
		}
		fmt.Fprintf(&content, "%T", e)
		if err := json.NewEncoder(&content).Encode(e); err != nil {
			fmt.Fprintf(&content, "%+v", e)
		}
		if to := leadsTo(e); to != "" {
			known.to = to
		}
		switch e := e.(type) {
		case *expr.Cmp:
			switch {
			case loaded == "interface":
				known.interfaces = append(known.interfaces, interfaceName(e.Data))
			case loaded == "protocol" && e.Op == expr.CmpOpEq && len(e.Data) == 1:
				protocol = protocols[e.Data[0]]
			case loaded == "port" && e.Op == expr.CmpOpEq && len(e.Data) == 2:
				known.ports = append(known.ports, portText(protocol, binary.BigEndian.Uint16(e.Data)))
			}
		case *expr.Match:
			known.match(e)
		}
		loaded = loads(e)
	}
	content.Write(r.UserData)
	known.digest = digestOf(content.Bytes())
	return known
}

// loads returns what of a packet the expression loads for the next one to compare: its
// "interface", its "protocol", the "port" to which it goes, or else "".
func loads(e expr.Any) string {
	switch e := e.(type) {
	case *expr.Meta:
		switch e.Key {
		case expr.MetaKeyIIFNAME, expr.MetaKeyOIFNAME:
			return "interface"
		case expr.MetaKeyL4PROTO:
			return "protocol"
		}
	case *expr.Payload:
		switch {
		case e.Base == expr.PayloadBaseNetworkHeader && e.Offset == 9 && e.Len == 1: // of IPv4: RFC 791
			return "protocol"
		case e.Base == expr.PayloadBaseTransportHeader && e.Offset == 2 && e.Len == 2: // of UDP and TCP alike: RFC 768, RFC 9293
			return "port"
		}
	}
	return ""
}

var protocols = map[byte]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp"}

func portText(protocol string, port uint16) string { return fmt.Sprintf("%s/%d", protocol, port) }

// match notes the comment, the set or the one port of an extension of iptables.
func (r *packetRule) match(m *expr.Match) {
	switch info := m.Info.(type) {
	case *xt.Comment:
		r.comments = append(r.comments, string(*info))
	case *xt.Udp:
		r.addPort("udp", info.DstPorts, info.InvFlags == 0)
	case *xt.Tcp:
		r.addPort("tcp", info.DstPorts, info.InvFlags == 0)
	case *xt.Unknown:
		// linux/netfilter/xt_set.h: struct xt_set_info begins with the set's index
		if m.Name == "set" && len(*info) >= 2 {
			r.sets = append(r.sets, setName(binary.NativeEndian.Uint16(*info)))
		}
	}
}

func (r *packetRule) addPort(protocol string, ports [2]uint16, inside bool) {
	if inside && ports[0] == ports[1] {
		r.ports = append(r.ports, portText(protocol, ports[0]))
	}
}

// interfaceName returns the name with which a rule compares. A comparison that ends before
// the terminating zero is one with a prefix.
func interfaceName(data []byte) string {
	name, _, terminated := bytes.Cut(data, []byte{0})
	if !terminated && len(name) < 16 {
		return string(name) + "*"
	}
	return string(name)
}

// userComments returns the comments that nft and iptables store beside a rule.
func userComments(data []byte) []string {
	var comments []string
	for len(data) >= 2 && len(data) >= 2+int(data[1]) {
		if userdata.Type(data[0]) == userdata.TypeComment {
			comments = append(comments, string(bytes.TrimRight(data[2:2+int(data[1])], "\x00")))
		}
		data = data[2+int(data[1]):]
	}
	return comments
}

// leadsTo returns the chain or target of an expression; "" if it has none.
func leadsTo(e expr.Any) string {
	switch e := e.(type) {
	case *expr.Verdict:
		return cmp.Or(e.Chain, verdicts[e.Kind])
	case *expr.Target:
		return e.Name
	case *expr.Masq:
		return "masquerade"
	case *expr.NAT:
		return "nat"
	}
	return ""
}

var verdicts = map[expr.VerdictKind]string{expr.VerdictAccept: "accept", expr.VerdictDrop: "drop", expr.VerdictReturn: "return"}

// parseSavedRule reads a line of iptables-save.
func parseSavedRule(table, chain, line string) packetRule {
	r := packetRule{table: table, chain: chain, digest: digestOf([]byte(line))}
	words := shellWords(line)
	protocol := ""
	for i, option := range words[:max(0, len(words)-1)] {
		value := words[i+1]
		switch option {
		case "-j", "-g":
			r.to = value
		case "-i", "-o":
			if prefix, found := strings.CutSuffix(value, "+"); found {
				value = prefix + "*"
			}
			r.interfaces = append(r.interfaces, value)
		case "--match-set":
			r.sets = append(r.sets, value)
		case "-p":
			protocol = value
		case "--dport":
			if port, err := strconv.ParseUint(value, 10, 16); err == nil && i > 0 && words[i-1] != "!" {
				r.ports = append(r.ports, portText(protocol, uint16(port)))
			}
		case "--comment":
			r.comments = append(r.comments, value)
		}
	}
	return r
}

// shellWords splits a line of iptables-save into words. A word with blanks is in double
// quotes, and a backslash in it escapes the next byte.
func shellWords(line string) []string {
	var words []string
	var word strings.Builder
	quoted, begun := false, false
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && quoted && i+1 < len(line):
			i++
			word.WriteByte(line[i])
		case c == '"':
			quoted, begun = !quoted, true
		case c == ' ' && !quoted:
			end()
		default:
			begun = true
			word.WriteByte(c)
		}
	}
	end()
	return words
}
