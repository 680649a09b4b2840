package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/conn/internal/classify"
	"github.com/signalbox-dev/signalbox/conn/internal/link"
	"github.com/signalbox-dev/signalbox/conn/internal/machine"
	"github.com/signalbox-dev/signalbox/conn/internal/workerset"
)

// errBuildTimeout is why workers that took too long to start were given up.
var errBuildTimeout = fmt.Errorf("the workers did not start within %s: %w", buildTimeout, context.DeadlineExceeded)

// errAnother is why a client cannot go on that reaches another server.
var errAnother = errors.New("another server answers")

// probe asks a client's frontend for its health. It is given up sooner than a check, which confirms what it finds: so a
// server that hangs is known within ten seconds.
func (m *Manager) probe(ctx context.Context, g *generation) result {
	ctx, cancel := context.WithTimeout(ctx, m.opts.CheckTimeout*3/4)
	defer cancel()
	begin := time.Now()
	err := g.link.Probe(ctx)
	kind := judge(ctx, err)
	if kind == machine.Unreachable && !g.link.Connected() { // one that ran out of its time has none left for a diagnosis
		kind, err = classify.Diagnose(ctx, g.address, g.tls, kind, err)
	}
	return result{used: g, event: machine.Checked{Kind: kind, Took: time.Since(begin), Err: classify.Explain(g.address, err)}}
}

// judge is the kind of a check's error. gRPC has several words for a call that ran out of its time.
func judge(ctx context.Context, err error) machine.Kind {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return machine.Hung
	}
	return classify.Kind(err)
}

// check asks for the namespace, on a new client where it is given none.
func (m *Manager) check(ctx context.Context, g *generation, number int) result {
	begin := time.Now()
	var r result
	if g == nil {
		made, err := m.generate(ctx, number)
		if err != nil {
			return result{event: machine.Checked{Kind: classify.Credentials(err), Took: time.Since(begin), Err: err}}
		}
		g, r.made = made, made
	}
	r.used = g
	checkCtx, cancel := context.WithTimeout(ctx, m.opts.CheckTimeout)
	defer cancel()
	identity, err := g.link.Check(checkCtx)
	took := time.Since(begin)
	kind := judge(checkCtx, err)
	if kind != machine.None && !g.link.Connected() {
		kind, err = classify.Diagnose(ctx, g.address, g.tls, kind, err)
	}
	if err == nil {
		r.identity = &identity
	}
	r.event = machine.Checked{Kind: kind, Took: took, Err: classify.Explain(g.address, err)}
	return r
}

// recheckFor is how long the current client may take to answer after a new one was looked at; twice what that one took, where
// that is more, because a server that is busy is busy for both.
const recheckFor = 500 * time.Millisecond

// attempt checks a new client and then whether the current one, if there is one, is answered as well: it may be so even where
// no new one can be made, or is let in.
func (m *Manager) attempt(ctx context.Context, current, fresh *generation, number int) result {
	r := m.check(ctx, fresh, number)
	if current == nil || r.used == current {
		return r
	}
	checked := r.event.(machine.Checked) //nolint:forcetypeassert // the end of a check
	patience := 2 * checked.Took
	if checked.Kind != machine.None {
		patience = 0
		if current.link.Connected() { // there is no other to go on with
			patience = m.opts.CheckTimeout - checked.Took
		}
	}
	_, err := recheck(ctx, current, max(recheckFor, min(patience, m.opts.CheckTimeout)))
	checked.Current = err == nil
	if checked.Current && checked.Kind != machine.None && r.used != nil { // the server may have come back between the two
		begin := time.Now()
		if identity, err := recheck(ctx, r.used, recheckFor); err == nil {
			r.identity = &identity
			checked = machine.Checked{Took: time.Since(begin), Current: true}
		}
	}
	r.event = checked
	return r
}

// recheck asks a client that was asked before. Another server behind it than the one that it was made for is no answer.
func recheck(ctx context.Context, g *generation, patience time.Duration) (link.Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	identity, err := g.link.Recheck(ctx)
	if err == nil && g.identity != nil && !g.identity.Same(identity) {
		err = errAnother
	}
	return identity, err
}

// build makes a generation that is ready to be swapped in. Where that fails while there is no other to use, it tells whether
// the current one is answered.
func (m *Manager) build(ctx context.Context, current, g *generation, number int) result {
	r := m.make(ctx, g, number)
	built := r.event.(machine.Built) //nolint:forcetypeassert // the end of a build
	if built.Err != nil && current != nil && m.view.Load().down != nil {
		_, err := recheck(ctx, current, recheckFor)
		built.Current = err == nil
		r.event = built
	}
	return r
}

// make makes the generation: a client that was checked, and a worker of every set, started. It holds the turns of the sets in
// its outcomes, those of a failed build included. A set that fails for reasons of its own does not keep the others back.
func (m *Manager) make(ctx context.Context, g *generation, number int) result {
	var r result
	if g == nil || g.identity == nil {
		c := m.check(ctx, g, number)
		checked := c.event.(machine.Checked) //nolint:forcetypeassert // the end of a check
		if r.made = c.made; c.used != nil {
			g = c.used
		}
		if checked.Kind != machine.None {
			r.used, r.event = c.used, machine.Built{Err: checked.Err, Kind: checked.Kind}
			return r
		}
		g.identity = c.identity
		if g.identity == nil { // an answer such as "too many requests" does not say whose it is
			g.identity = &link.Identity{}
		}
	}
	r.used = g
	ctx, cancel := context.WithTimeoutCause(ctx, buildTimeout, errBuildTimeout)
	defer cancel()
	var err error
	r.outcomes, err = workerset.StartAll(ctx, m.sets.List(), g.link, number, m.joined.Go)
	if err == nil {
		err = workerset.Blame(ctx, r.outcomes)
	}
	if err == nil {
		r.event = machine.Built{}
		return r
	}
	kind := classify.Kind(err)
	if errors.Is(err, errBuildTimeout) {
		kind = machine.Hung
	}
	r.event = machine.Built{Err: err, Kind: kind}
	return r
}

// generate makes a client that nobody knows yet.
func (m *Manager) generate(ctx context.Context, number int) (*generation, error) {
	options := m.opts.Client
	if m.opts.Reload != nil {
		fresh, err := m.opts.Reload()
		if err != nil {
			return nil, fmt.Errorf("reading the settings of the connection: %w", err)
		}
		options = m.opts.completed(fresh)
	}
	g := &generation{
		number: number, address: options.HostPort, namespace: options.Namespace,
	}
	if !options.ConnectionOptions.TLSDisabled {
		g.tls = options.ConnectionOptions.TLS
		if g.tls == nil && options.Credentials != nil {
			g.tls = &tls.Config{MinVersion: tls.VersionTLS12} // as the SDK does
		}
	}
	var err error
	g.link, err = link.New(ctx, options, m.opts.DrainTimeout, link.Hooks{
		Ready: func(ready bool) {
			switch {
			case ready:
				m.signals.Raise(&m.signals.Ready)
			case m.view.Load().generation == g: // of the others, nobody expects to last
				m.signals.Raise(&m.signals.Lost)
			}
		},
		Suspect: func() { m.signals.Raise(&m.signals.Suspected) },
		Begin:   m.traffic.Begin,
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}
