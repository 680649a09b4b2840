package conn

import (
	"context"
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

// probe asks a client's frontend for its health. It is given up sooner than a check, which confirms what it finds: so a
// server that hangs is known within ten seconds.
func (m *Manager) probe(ctx context.Context, g *generation) result {
	ctx, cancel := context.WithTimeout(ctx, m.opts.CheckTimeout*3/4)
	defer cancel()
	begin := time.Now()
	err := g.link.Probe(ctx)
	return result{used: g, event: machine.Checked{Kind: judge(ctx, err), Took: time.Since(begin), Err: err}}
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
		kind, err = classify.Diagnose(ctx, g.address, g.secure, kind, err)
	}
	if err == nil {
		r.identity = &identity
	}
	r.event = machine.Checked{Kind: kind, Took: took, Err: err}
	return r
}

// recheckFor is how long the current client may take to answer once a new one was answered.
const recheckFor = 500 * time.Millisecond

// attempt checks a new client and, once that is answered, whether the current one, if there is one, is answered as well.
func (m *Manager) attempt(ctx context.Context, current, fresh *generation, number int) result {
	r := m.check(ctx, fresh, number)
	checked := r.event.(machine.Checked) //nolint:forcetypeassert // the end of a check
	if checked.Kind != machine.None || current == nil || r.used == current {
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, recheckFor)
	defer cancel()
	identity, err := current.link.Recheck(ctx)
	checked.Current = err == nil && current.identity.Same(identity)
	r.event = checked
	return r
}

// build makes a generation that is ready to be swapped in: a client that was checked, and a worker of every set, started.
// It holds the turns of the sets in its outcomes. A set that fails for reasons of its own does not keep the others back.
func (m *Manager) build(ctx context.Context, g *generation, number int) result {
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
	outcomes, err := workerset.StartAll(ctx, m.sets.List(), g.link, number)
	if err == nil {
		err = workerset.Blame(ctx, outcomes)
	}
	if err == nil {
		r.outcomes, r.event = outcomes, machine.Built{}
		return r
	}
	for _, o := range outcomes {
		if o.Running != nil {
			m.joined.Go(o.Running.Stop)
		}
		o.Set.Give()
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
		secure: !options.ConnectionOptions.TLSDisabled && (options.ConnectionOptions.TLS != nil || options.Credentials != nil),
	}
	var err error
	g.link, err = link.New(ctx, options, m.opts.DrainTimeout, link.Hooks{
		Ready: func(ready bool) {
			switch {
			case ready:
				m.signals.raise(&m.signals.ready)
			case m.view.Load().generation == g: // of the others, nobody expects to last
				m.signals.raise(&m.signals.lost)
			}
		},
		Suspect: func() { m.signals.raise(&m.signals.suspected) },
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}
