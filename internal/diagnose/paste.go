package diagnose

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// pasteMark begins the line of a paste that has the case.
const pasteMark = "cnibench-case:"

// maxCase is the most that a paste's case may hold, bytes.
const maxCase = 16 << 20

// Paste returns the case as Markdown for an issue tracker: the answer for people, and all
// that was seen in one line, which ReadPaste reads back. Names of nodes and pods and public
// addresses are replaced.
func Paste(c *Case, program string) (string, error) {
	hidden, err := c.hideNames()
	if err != nil {
		return "", err
	}
	v := Diagnose(hidden)
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**: %s, kernel %s, %s\n\n```\n%s\n", program, hidden.Arena, hidden.Kernel, hidden.Contender, v.Summary)
	for _, l := range Doctor(hidden) {
		fmt.Fprintf(&b, "%s %-9s %s\n", map[bool]string{true: "✓", false: "✗"}[l.OK], l.What, l.Text)
	}
	for _, x := range v.Causes {
		fmt.Fprintf(&b, "\n%s (%s): %s\n", x.ID, x.State, x.Text)
		for _, e := range x.Evidence {
			fmt.Fprintf(&b, "  %s: %s [%s]\n", e.What, e.Value, e.At)
		}
	}
	text, err := json.Marshal(hidden)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(text); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "```\n\n<details><summary>All that was seen: save this text and run <code>cnibench diagnose FILE</code></summary>\n\n```\n%s%s\n```\n</details>\n",
		pasteMark, base64.StdEncoding.EncodeToString(packed.Bytes()))
	return b.String(), nil
}

// ReadPaste returns the case of a paste. ok is false for a text that is none.
func ReadPaste(text []byte) (c *Case, ok bool, err error) {
	_, rest, ok := bytes.Cut(text, []byte(pasteMark))
	if !ok {
		return nil, false, nil
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	packed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(line)))
	if err != nil {
		return nil, true, fmt.Errorf("the case of the paste: %w", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, true, fmt.Errorf("the case of the paste: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(z, maxCase))
	if err != nil {
		return nil, true, fmt.Errorf("the case of the paste: %w", err)
	}
	c = &Case{}
	if err := json.Unmarshal(plain, c); err != nil {
		return nil, true, fmt.Errorf("the case of the paste: %w", err)
	}
	if c.Schema != CaseSchema {
		return nil, true, errors.New("the case of the paste has another schema")
	}
	return c, true, nil
}

var (
	ipv4 = regexp.MustCompile(`\b[0-9]{1,3}(\.[0-9]{1,3}){3}\b`)
	// private6 are those of IPv6 that tell nobody anything: RFC 4193, link-local, multicast,
	// loopback, unspecified.
	private6 = regexp.MustCompile(`(?i)^(f[cd]|fe[89ab]|ff|::1?$)`)
	ipv6     = regexp.MustCompile(`[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7}`)
	// private are the addresses that tell nobody anything: RFC 1918, RFC 6598, loopback,
	// link-local, documentation, and masks.
	private = regexp.MustCompile(`^(10\.|127\.|0\.|255\.|169\.254\.|192\.168\.|192\.0\.2\.|172\.(1[6-9]|2[0-9]|3[01])\.|100\.(6[4-9]|[7-9][0-9]|1[01][0-9]|12[0-7])\.)`)
)

// hideNames returns a copy without names of nodes and pods, search domains, public addresses and
// single slices.
func (c *Case) hideNames() (*Case, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	out := &Case{}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, err
	}
	for i := range out.Snapshots {
		s := &out.Snapshots[i]
		if s.Resolver != nil {
			for k, domain := range s.Resolver.Search {
				if !strings.HasSuffix(domain, "cluster.local") {
					s.Resolver.Search[k] = "example.org"
				}
			}
		}
		for k := range s.Policies {
			s.Policies[k] = fmt.Sprintf("policy%d", k+1)
		}
		for k, name := range s.Containers {
			if !slices.Contains(proxies, name) {
				s.Containers[k] = "app"
			}
		}
		for k := range s.Devices { // IPv6 addresses can be public, and no cause reads them
			var kept []string
			for _, a := range s.Devices[k].Addrs {
				if !strings.Contains(a, ":") {
					kept = append(kept, a)
				}
			}
			s.Devices[k].Addrs = kept
		}
	}
	names := map[string]string{}
	nodes, pods := 0, 0
	for i := range out.Snapshots {
		s := &out.Snapshots[i]
		switch {
		case !s.Pod:
			nodes++
			names[s.Endpoint] = fmt.Sprintf("node%d", nodes)
		case s.Yours:
			pods++
			names[s.Endpoint] = fmt.Sprintf("yours/pod%d", pods)
		}
	}
	for i, p := range out.Pods { // of this program: "worker-a pod1"
		if i < len(out.Ends) {
			names[p] = names[out.Ends[i]] + "-pod1"
		}
	}
	if text, err = json.Marshal(out); err != nil {
		return nil, err
	}
	public := map[string]string{}
	plain := ipv4.ReplaceAllStringFunc(string(text), func(a string) string {
		if private.MatchString(a) {
			return a
		}
		if public[a] == "" {
			public[a] = fmt.Sprintf("192.0.2.%d", len(public)%254+1)
		}
		return public[a]
	})
	plain = ipv6.ReplaceAllStringFunc(plain, func(a string) string {
		if !strings.Contains(a, "::") && strings.Count(a, ":") != 7 || private6.MatchString(a) {
			return a
		}
		if public[a] == "" {
			public[a] = fmt.Sprintf("2001:db8::%x", len(public)+1)
		}
		return public[a]
	})
	out = &Case{}
	if err := json.Unmarshal([]byte(plain), out); err != nil {
		return nil, err
	}
	out.rename(func(name string) string {
		if other, known := names[name]; known {
			return other
		}
		if node, pod, is := strings.Cut(name, " "); is && names[node] != "" { // another pod of this program
			return names[node] + "-" + pod
		}
		return name
	})
	return out, nil
}

// rename replaces the names of endpoints.
func (c *Case) rename(to func(string) string) {
	for i := range c.Ends {
		c.Ends[i] = to(c.Ends[i])
	}
	for i := range c.Pods {
		c.Pods[i] = to(c.Pods[i])
	}
	for i := range c.Snapshots {
		c.Snapshots[i].Endpoint, c.Snapshots[i].Node = to(c.Snapshots[i].Endpoint), to(c.Snapshots[i].Node)
	}
	for i := range c.Paths {
		p := &c.Paths[i]
		p.From, p.To = to(p.From), to(p.To)
		for _, probe := range p.Probes {
			counters := map[string]map[string]float64{}
			for endpoint, values := range probe.Counters {
				counters[to(endpoint)] = values
			}
			clear(probe.Counters)
			for endpoint, values := range counters {
				probe.Counters[endpoint] = values
			}
		}
	}
	for i := range c.Trials {
		t := &c.Trials[i]
		t.Key, t.Node = to(t.Node)+strings.TrimPrefix(t.Key, t.Node), to(t.Node)
	}
	for i := range c.Unseen {
		for _, s := range []*string{&c.Unseen[i].Why, &c.Unseen[i].Remedy} {
			for _, word := range strings.Fields(*s) {
				if bare := strings.Trim(word, ",;:()\""); to(bare) != bare {
					*s = strings.ReplaceAll(*s, bare, to(bare))
				}
			}
		}
	}
}
