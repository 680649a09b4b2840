package health

import (
	"context"
	"fmt"
	"time"
)

// part is a dependency with the result of its last check. turn is held during a check: a burst of probes makes one
// check, and a prober that gives up does not delay the others.
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
		return DependencyState{Name: p.dependency.Name, State: Down, Since: now(),
			LastError: "not checked: the request was canceled"}
	}
	if p.dependency.Condition != nil {
		p.setCondition(p.dependency.Condition(), now())
		return p.last
	}
	fresh := freshness
	if p.last.State == Down {
		fresh = downFreshness
	}
	if !p.checked.IsZero() && now().Sub(p.checked) < fresh {
		return p.last
	}
	// Later requests reuse the result, so the first request's cancellation must not decide it.
	checkCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	err := p.dependency.Checker.Check(checkCtx)
	if err != nil && checkCtx.Err() != nil {
		err = fmt.Errorf("it did not answer within %s", checkTimeout)
	}
	p.setResult(err, now())
	return p.last
}

func (p *part) setResult(err error, at time.Time) {
	next := DependencyState{Name: p.dependency.Name, State: Up, Since: at, LastError: p.last.LastError,
		LastErrorAt: p.last.LastErrorAt}
	if err != nil {
		next.State, next.LastError, next.LastErrorAt = Down, err.Error(), &at
		if p.dependency.Title != nil {
			next.Title = p.dependency.Title()
		}
	}
	if next.State == p.last.State {
		next.Since = p.last.Since
	}
	p.last, p.checked = next, at
}

// setCondition stores the condition that the monitor of the dependency reports.
func (p *part) setCondition(c Condition, at time.Time) {
	next := DependencyState{
		Name: p.dependency.Name, State: Up, Condition: c.State, Kind: c.Kind, Since: c.Since,
		LastError: p.last.LastError, LastErrorAt: p.last.LastErrorAt, pending: c.Pending,
	}
	if c.Err != nil {
		next.State, next.LastError, next.LastErrorAt = Down, c.Err.Error(), &at
		if c.Usable {
			next.State = Impaired
		}
	}
	p.last = next
}
