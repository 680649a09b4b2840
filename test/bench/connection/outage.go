package connection

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

const (
	// bootTime is the approximate time from Temporal's start to its first accepted connection.
	bootTime = 200 * time.Millisecond
	// heldAfter is how long an activity that began before an outage continues after it: across the swap.
	heldAfter = 3 * time.Second
	// betweenOutages lets all members become idle.
	betweenOutages = 2 * time.Second
)

// outage interrupts Temporal for a while and returns when it accepted connections again.
type outage func(length time.Duration) (accepted time.Time, err error)

// killed returns an outage of a Temporal that is killed and restarted on its data.
func killed(t platform.T, temporal *platform.Temporal) outage {
	return func(length time.Duration) (time.Time, error) {
		gone := time.Now()
		temporal.Kill()
		if err := sleep(t.Context(), length-bootTime-time.Since(gone)); err != nil {
			return time.Time{}, err
		}
		if err := platform.Try(func() { temporal = temporal.Relaunch(t) }); err != nil {
			return time.Time{}, err
		}
		return accepting(t.Context(), temporal.Address)
	}
}

// unreachable returns an outage of the connection to a running Temporal.
func unreachable(t platform.T, frontend *conntest.Frontend) outage {
	return func(length time.Duration) (time.Time, error) {
		frontend.Stop()
		if err := sleep(t.Context(), length); err != nil {
			return time.Time{}, err
		}
		return time.Now(), frontend.Restart()
	}
}

// accepting waits until a port accepts connections and returns when it did.
func accepting(ctx context.Context, address string) (time.Time, error) {
	err := retry(ctx, func(ctx context.Context) (bool, error) {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err != nil {
			return false, err
		}
		return true, c.Close()
	})
	return time.Now(), err
}

// recovery has the measurements of members of one kind over outages of one length.
type recovery struct {
	first promise.Times // from accepting connections to the end of a workflow that was started then
	// For activities held across the return: how late they ended, and how many were executed more than once.
	late  promise.Times
	again int
}

// recoveries are by kind and length.
type recoveries struct {
	mu    sync.Mutex
	found map[string]map[time.Duration]*recovery
	// taking is the time from accepting connections to accepting a start: the lower bound for any worker.
	taking promise.Times
}

func newRecoveries() *recoveries { return &recoveries{found: map[string]map[time.Duration]*recovery{}} }

func (r *recoveries) of(kind string, length time.Duration) *recovery {
	if r.found[kind] == nil {
		r.found[kind] = map[time.Duration]*recovery{}
	}
	if r.found[kind][length] == nil {
		r.found[kind][length] = &recovery{}
	}
	return r.found[kind][length]
}

// run makes one outage for all members of a group, and records each member's recovery. Workflows are started by
// a client that the outage does not affect. With held, each member has an activity in progress all the time.
func (r *recoveries) run(ctx context.Context, at outageGroup, held bool) error {
	var holding []string
	if held {
		var err error
		if holding, err = beginActivities(ctx, at.members, at.temporal, at.length+heldAfter); err != nil {
			return err
		}
	}
	accepted, err := at.away(at.length)
	if err != nil {
		return err
	}
	s, err := newStarter(at.temporal)
	if err != nil {
		return err
	}
	defer s.close()
	ended := make(chan error, 1)
	go func() {
		ended <- all(holding, func(i int, id string) error { return r.charged(ctx, s, at.members[i], id, at.length) })
	}()
	err = all(at.members, func(_ int, m *member) error { return r.recovered(ctx, s, m, at.length, accepted) })
	if err := errors.Join(err, <-ended); err != nil {
		return fmt.Errorf("after an outage of %s: %w", at.length, err)
	}
	return sleep(ctx, betweenOutages)
}

// recovered records how long the first workflow after an outage takes.
func (r *recoveries) recovered(ctx context.Context, s *starter, m *member, length time.Duration,
	accepted time.Time) error {
	id, err := s.start(ctx, m.queue, 0)
	if err != nil {
		return err
	}
	taken := time.Since(accepted)
	if err := s.ended(ctx, id); err != nil {
		return err
	}
	done := time.Since(accepted)
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.of(m.kind, length)
	f.first = append(f.first, done)
	r.taking = append(r.taking, taken)
	return nil
}

// charged records the outcome of an activity that was in progress.
func (r *recoveries) charged(ctx context.Context, s *starter, m *member, id string, length time.Duration) error {
	if err := s.ended(ctx, id); err != nil {
		return err
	}
	executions := m.executions(id)
	late := max(time.Since(executions[0])-length-heldAfter, 0)
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.of(m.kind, length)
	f.late = append(f.late, late)
	if len(executions) > 1 {
		f.again++
	}
	return nil
}

// waitForReady has every member complete a workflow.
func waitForReady(ctx context.Context, members []*member, temporal string) error {
	s, err := newStarter(temporal)
	if err != nil {
		return err
	}
	defer s.close()
	return all(members, func(_ int, m *member) error {
		id, err := s.start(ctx, m.queue, 0)
		if err != nil {
			return err
		}
		return s.ended(ctx, id)
	})
}

// beginActivities begins an activity at every member and returns the workflow IDs.
func beginActivities(ctx context.Context, members []*member, temporal string, hold time.Duration) ([]string, error) {
	s, err := newStarter(temporal)
	if err != nil {
		return nil, err
	}
	defer s.close()
	ids := make([]string, len(members))
	err = all(members, func(i int, m *member) (err error) {
		if ids[i], err = s.start(ctx, m.queue, hold); err != nil {
			return err
		}
		return retry(ctx, func(context.Context) (bool, error) { return len(m.executions(ids[i])) > 0, nil })
	})
	return ids, err
}

// all calls f for every value at once and returns one of the errors.
func all[V any](values []V, f func(i int, v V) error) error {
	failures := make(chan error, len(values))
	var group sync.WaitGroup
	for i, v := range values {
		group.Go(func() {
			if err := f(i, v); err != nil {
				failures <- err
			}
		})
	}
	group.Wait()
	select {
	case err := <-failures:
		return err
	default:
		return nil
	}
}
