package health

import (
	"context"
	"fmt"
	"time"
)

// part is a dependency with what its last check found. turn is held while checking: a burst of probes
// makes one check, and a prober that gives up does not keep the others waiting.
type part struct {
	dependency Dependency
	turn       chan struct{}

	last    DependencyState
	checked time.Time
}

func (p *part) state(ctx context.Context, now func() time.Time) DependencyState {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return DependencyState{Name: p.dependency.Name, State: Down, Since: now(), LastError: "not checked: the request was given up"}
	}
	if p.dependency.Condition != nil {
		p.tell(p.dependency.Condition(), now())
		return p.last
	}
	fresh := freshness
	if p.last.State == Down {
		fresh = downFreshness
	}
	if !p.checked.IsZero() && now().Sub(p.checked) < fresh {
		return p.last
	}
	// The result is kept for later askers, so it must not be the first asker's impatience that decides it.
	checkCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	err := p.dependency.Checker.Check(checkCtx)
	if err != nil && checkCtx.Err() != nil {
		err = fmt.Errorf("it did not answer within %s", checkTimeout)
	}
	p.note(err, now())
	return p.last
}

func (p *part) note(err error, at time.Time) {
	next := DependencyState{Name: p.dependency.Name, State: Up, Since: at, LastError: p.last.LastError, LastErrorAt: p.last.LastErrorAt}
	if err != nil {
		next.State, next.LastError, next.LastErrorAt = Down, err.Error(), &at
	}
	if next.State == p.last.State {
		next.Since = p.last.Since
	}
	p.last, p.checked = next, at
}

// tell takes over what whoever watches the dependency says.
func (p *part) tell(c Condition, at time.Time) {
	next := DependencyState{
		Name: p.dependency.Name, State: Up, Condition: c.State, Kind: c.Kind, Since: c.Since,
		LastError: p.last.LastError, LastErrorAt: p.last.LastErrorAt,
	}
	if c.Err != nil {
		next.State, next.LastError, next.LastErrorAt = Down, c.Err.Error(), &at
		if c.Usable {
			next.State = Impaired
		}
	}
	p.last = next
}
