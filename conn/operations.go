package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/conn/internal/classify"
	connclient "github.com/signalbox-dev/signalbox/conn/internal/client"
	"github.com/signalbox-dev/signalbox/conn/internal/fsm"
	"github.com/signalbox-dev/signalbox/conn/internal/workers"
)

// errBuildTimeout is the error of workers that took longer than buildTimeout to start.
var errBuildTimeout = fmt.Errorf("the workers did not start within %s: %w", buildTimeout, context.DeadlineExceeded)

// errAnother is why a client cannot go on that reaches another server.
var errAnother = errors.New("another server answers")

// probe runs the light health check. Its timeout is shorter than that of the check that confirms its result, so that a
// server that hangs is detected within ten seconds.
func (m *Manager) probe(ctx context.Context, g *generation) result {
	ctx, cancel := context.WithTimeout(ctx, m.opts.CheckTimeout*3/4)
	defer cancel()
	begin := time.Now()
	err := g.client.Probe(ctx)
	kind := kindOf(ctx, err)
	if kind == Unreachable && !g.client.Connected() { // not after a timeout, which leaves no time for a diagnosis
		kind, err = classify.Diagnose(ctx, g.address, g.tls, kind, err)
	}
	return result{used: g, event: fsm.Checked{Kind: kind, Took: time.Since(begin), Err: classify.Explain(g.address, err)}}
}

// kindOf returns the kind of a check's error. gRPC has several errors for a passed deadline.
func kindOf(ctx context.Context, err error) Kind {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Hung
	}
	return classify.Kind(err)
}

// check requests the namespace, over a new client if g is nil.
func (m *Manager) check(ctx context.Context, g *generation, number int) result {
	begin := time.Now()
	var r result
	if g == nil {
		made, err := m.newGeneration(ctx, number)
		if err != nil {
			return result{event: fsm.Checked{Kind: classify.CredentialsKind(err), Took: time.Since(begin), Err: err}}
		}
		g, r.made = made, made
	}
	r.used = g
	checkCtx, cancel := context.WithTimeout(ctx, m.opts.CheckTimeout)
	defer cancel()
	identity, err := g.client.Check(checkCtx)
	took := time.Since(begin)
	kind := kindOf(checkCtx, err)
	if kind != None && !g.client.Connected() {
		kind, err = classify.Diagnose(ctx, g.address, g.tls, kind, err)
	}
	if err == nil {
		r.identity = &identity
	}
	r.event = fsm.Checked{Kind: kind, Took: took, Err: classify.Explain(g.address, err)}
	return r
}

// recheckTimeout is how long the check of the current client may take after that of a new one; twice the time that the
// new one took where that is more, since a busy server is busy for both.
const recheckTimeout = 500 * time.Millisecond

// attempt checks a new client, and then the current one, if there is one: the server may answer the current client even
// where no new one can be made or the new one is refused.
func (m *Manager) attempt(ctx context.Context, current, fresh *generation, number int) result {
	r := m.check(ctx, fresh, number)
	if current == nil || r.used == current {
		return r
	}
	checked := r.event.(fsm.Checked) //nolint:forcetypeassert // the end of a check
	timeout := 2 * checked.Took
	if checked.Kind != None {
		timeout = 0
		if current.client.Connected() { // it is the only client that could be used
			timeout = m.opts.CheckTimeout - checked.Took
		}
	}
	_, err := recheck(ctx, current, max(recheckTimeout, min(timeout, m.opts.CheckTimeout)))
	checked.CurrentAnswered = err == nil
	// the server may have come back between the two checks
	if checked.CurrentAnswered && checked.Kind != None && r.used != nil {
		begin := time.Now()
		if identity, err := recheck(ctx, r.used, recheckTimeout); err == nil {
			r.identity = &identity
			checked = fsm.Checked{Took: time.Since(begin), CurrentAnswered: true}
		}
	}
	r.event = checked
	return r
}

// recheck checks a client that was checked before. It fails if the server is another one than the client was made for.
func recheck(ctx context.Context, g *generation, timeout time.Duration) (connclient.Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	identity, err := g.client.Recheck(ctx)
	if err == nil && g.identity != nil && !g.identity.Same(identity) {
		err = errAnother
	}
	return identity, err
}

// build makes a generation that can replace the current one. If that fails while the connection is not up, the result
// also reports whether the server answers the current client.
func (m *Manager) build(ctx context.Context, current, g *generation, number int) result {
	r := m.buildGeneration(ctx, g, number)
	built := r.event.(fsm.Built) //nolint:forcetypeassert // the end of a build
	if built.Err != nil && current != nil && m.view.Load().down != nil {
		_, err := recheck(ctx, current, recheckTimeout)
		built.CurrentAnswered = err == nil
		r.event = built
	}
	return r
}

// buildGeneration makes a generation: a checked client, and a started worker of every set. The sets in the outcomes
// stay locked, also after a failed build. A failed start while the connection works does not fail the build.
func (m *Manager) buildGeneration(ctx context.Context, g *generation, number int) result {
	var r result
	if g == nil || g.identity == nil {
		c := m.check(ctx, g, number)
		checked := c.event.(fsm.Checked) //nolint:forcetypeassert // the end of a check
		if r.made = c.made; c.used != nil {
			g = c.used
		}
		if checked.Kind != None {
			r.used, r.event = c.used, fsm.Built{Err: checked.Err, Kind: checked.Kind}
			return r
		}
		g.identity = c.identity
		if g.identity == nil { // an answer such as "too many requests" contains no identity
			g.identity = &connclient.Identity{}
		}
	}
	r.used = g
	ctx, cancel := context.WithTimeoutCause(ctx, buildTimeout, errBuildTimeout)
	defer cancel()
	var err error
	r.outcomes, err = workers.StartAll(ctx, m.sets.List(), g.client, number, m.tasks.Go)
	if err == nil {
		err = workers.ConnectionError(ctx, r.outcomes)
	}
	if err == nil {
		r.event = fsm.Built{}
		return r
	}
	kind := classify.Kind(err)
	if errors.Is(err, errBuildTimeout) {
		kind = Hung
	}
	r.event = fsm.Built{Err: err, Kind: kind}
	return r
}

// newGeneration makes a client that is not in use yet.
func (m *Manager) newGeneration(ctx context.Context, number int) (*generation, error) {
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
	g.client, err = connclient.New(ctx, options, m.opts.DrainTimeout, connclient.Hooks{
		Ready: func(ready bool) {
			switch {
			case ready:
				m.signals.raise(&m.signals.ready)
			case m.view.Load().generation == g: // losing a candidate's connection is no event
				m.signals.raise(&m.signals.lost)
			}
		},
		Suspect: func() { m.signals.raise(&m.signals.suspected) },
		Begin:   m.traffic.Begin,
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}
