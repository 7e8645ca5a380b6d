package tune

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/arena"
	"github.com/cnibench/cnibench/internal/contender"
	"github.com/cnibench/cnibench/internal/host"
	"github.com/cnibench/cnibench/internal/result"
)

// Variant is a contender with settings applied once it is up.
type Variant struct {
	ID string // the contender's, "+" and what is set
	Request
}

// Variants are a contender with each setting alone and, where there are
// several, with all together.
func Variants(id string, req Request) []Variant {
	var list []Variant
	for _, c := range req.Settings {
		list = append(list, Variant{id + "+" + c.Setting, Request{Settings: []Choice{c}}})
	}
	for _, key := range slices.Sorted(maps.Keys(req.Sysctls)) {
		list = append(list, Variant{id + "+" + key, Request{Sysctls: map[string]string{key: req.Sysctls[key]}}})
	}
	if len(list) > 1 {
		list = append(list, Variant{id + "+all", req})
	}
	return list
}

// Contender is the variant of c.
func (v Variant) Contender(c *contender.Contender) *contender.Contender {
	tuned := *c
	tuned.ID = v.ID
	tuned.Summary = c.ID + " with " + strings.Join(v.Names(), ", ")
	return &tuned
}

// Bench is an arena whose contenders may have settings applied: in every
// namespace by a program inside of it, and, where Host is set, to the machine
// itself, from Up to Down.
type Bench struct {
	arena.Arena
	Exe      string             // this program, as the endpoints start it
	Variants map[string]Variant // by id; others come up as they are
	// Host is the machine for settings that are the whole machine's; nil: they
	// are not applied. Journal keeps their old values.
	Host    *Machine
	Journal *Journal
	// WholeMachine: see Request.
	WholeMachine bool
}

// MaxUp implements arena.Arena: settings of the whole machine apply to all
// contenders that are up.
func (b *Bench) MaxUp() int {
	if b.Host != nil {
		return 1
	}
	return b.Arena.MaxUp()
}

// Up implements arena.Arena.
func (b *Bench) Up(ctx context.Context, c *contender.Contender, variant string) (arena.Network, error) {
	v, tuned := b.Variants[c.ID]
	if !tuned {
		return b.Arena.Up(ctx, c, variant)
	}
	n := &tunedNetwork{bench: b, inside: v.Request, seen: map[string]bool{}, left: map[string]string{}, made: map[string]bool{}}
	if b.Host != nil {
		var err error
		if n.inside, err = v.of(ScopeNamespace); err != nil {
			return nil, err
		}
		if n.machine, err = v.of(ScopeMachine); err != nil {
			return nil, err
		}
		n.mark = b.Journal.Mark()
		if err := n.setHost(ctx); err != nil {
			return nil, errors.Join(err, n.revert(ctx))
		}
	}
	n.inside.WholeMachine = b.WholeMachine
	inner, err := b.Arena.Up(ctx, c, variant)
	if err != nil {
		return nil, errors.Join(err, n.revert(ctx))
	}
	n.Network = inner
	if err := n.set(ctx, append(inner.Nodes(), inner.Pods()...)); err != nil {
		return nil, errors.Join(err, n.Down(context.WithoutCancel(ctx)))
	}
	return n, nil
}

// tunedNetwork is a contender that is up, with its settings.
type tunedNetwork struct {
	arena.Network
	bench   *Bench
	inside  Request // for every endpoint
	machine Request // for the machine itself
	mark    int
	seen    map[string]bool   // endpoints that are done
	left    map[string]string // settings that changed nothing so far, with a reason
	made    map[string]bool   // settings that changed something
}

// Pair implements arena.Network: an endpoint that was made for the path is
// set, too.
func (n *tunedNetwork) Pair(ctx context.Context, path string) (arena.Pair, error) {
	p, err := n.Network.Pair(ctx, path)
	if err != nil {
		return p, err
	}
	return p, n.set(ctx, []arena.Endpoint{p.Client, p.Server})
}

// Notes implements arena.Network.
func (n *tunedNetwork) Notes() []result.Reason {
	notes := n.Network.Notes()
	for _, name := range slices.Sorted(maps.Keys(n.left)) {
		if !n.made[name] {
			notes = append(notes, result.Reason{Code: NothingSet, Text: fmt.Sprintf("%s changed nothing: %s", name, n.left[name])})
		}
	}
	return notes
}

// NothingSet is the code of a note that a setting changed nothing.
const NothingSet = "nothing_set"

// Down implements arena.Network.
func (n *tunedNetwork) Down(ctx context.Context) error {
	return errors.Join(n.Network.Down(ctx), n.revert(ctx))
}

// set asks a program inside each endpoint to set what its namespace has.
func (n *tunedNetwork) set(ctx context.Context, endpoints []arena.Endpoint) error {
	for _, e := range endpoints {
		if n.seen[e.Name()] || len(n.inside.Names()) == 0 {
			continue
		}
		n.seen[e.Name()] = true
		a, err := n.ask(ctx, e)
		if err != nil {
			return fmt.Errorf("settings of %s: %w", e.Name(), err)
		}
		n.note(a)
	}
	return nil
}

func (n *tunedNetwork) ask(ctx context.Context, e arena.Endpoint) (Answer, error) {
	var a Answer
	question, err := json.Marshal(n.inside)
	if err != nil {
		return a, err
	}
	var out bytes.Buffer
	p, err := e.Start(ctx, host.Command{Argv: []string{n.bench.Exe, "tune", "here"}, Stdin: bytes.NewReader(question), Stdout: &out, Aside: true})
	if err != nil {
		return a, err
	}
	if err := p.Wait(); err != nil {
		return a, err
	}
	err = json.NewDecoder(io.LimitReader(&out, 1<<20)).Decode(&a)
	return a, err
}

// note remembers which settings did something anywhere, and why others did
// not.
func (n *tunedNetwork) note(a Answer) {
	for _, name := range n.inside.Names() {
		if reason, left := a.Left[name]; left {
			n.left[name] = cmp.Or(n.left[name], reason) // a node's, not its pods'
		} else {
			n.made[name] = true
		}
	}
}

// setHost applies the machine's own settings, with their old values in the
// journal.
func (n *tunedNetwork) setHost(ctx context.Context) error {
	wanted, err := n.machine.Wanted()
	if err != nil {
		return err
	}
	f, err := Gather(ctx, n.bench.Host, nil)
	if err != nil {
		return err
	}
	items, err := Plan(f, wanted)
	if err != nil {
		return err
	}
	_, failed, err := Apply(ctx, n.bench.Host, n.bench.Journal, items)
	if err != nil {
		return err
	}
	if len(failed) > 0 {
		return fmt.Errorf("setting %s: %w", failed[0].Setting, failed[0].Err)
	}
	for _, item := range items {
		if left := item.Left(); left != "" {
			n.left[item.Setting.Name] = left
		} else {
			n.made[item.Setting.Name] = true
		}
	}
	return nil
}

// revert takes the machine's own settings back.
func (n *tunedNetwork) revert(ctx context.Context) error {
	if n.bench.Host == nil {
		return nil
	}
	r, err := Revert(context.WithoutCancel(ctx), n.bench.Host, n.bench.Journal, n.mark, false)
	if err == nil && len(r.Failed)+len(r.Kept) > 0 {
		err = errors.New("not every setting of the machine was taken back; see `cnibench tune status`")
	}
	return err
}
