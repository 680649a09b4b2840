package connection

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

const (
	// groupSize is the number of clients that lose Temporal together.
	groupSize = 30
	// outageLength is the length of the outage; calmAfter is the time after which the simultaneous first dials are over.
	outageLength = 5 * time.Second
	calmAfter    = time.Second
	// window is the time span in which dials are counted.
	window = 100 * time.Millisecond
)

// clientGroup is a set of clients of one kind at a frontend of their own.
type clientGroup struct {
	frontend *conntest.Frontend
	queues   []string

	mu    sync.Mutex
	dials []time.Time
}

func newClientGroup(t platform.T, k kind) *clientGroup {
	c := &clientGroup{frontend: conntest.Run(t, conntest.Options{})}
	dialer := &net.Dialer{}
	record := grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		c.mu.Lock()
		c.dials = append(c.dials, time.Now())
		c.mu.Unlock()
		return dialer.DialContext(ctx, "tcp", address)
	})
	for i := range groupSize {
		queue := fmt.Sprintf("crowd-%d", i)
		c.queues = append(c.queues, queue)
		newMember(t, k, c.frontend.Addr(), queue, func(o *client.Options) {
			o.ConnectionOptions.DialOptions = append(o.ConnectionOptions.DialOptions, record)
		})
	}
	return c
}

// allPoll waits until every client polls.
func (c *clientGroup) allPoll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c.frontend.Await(ctx, func() bool {
		return !slices.ContainsFunc(c.queues, func(queue string) bool { return c.frontend.Pollers(queue).Total() == 0 })
	})
}

// reconnections has the dials of a group over outages, one value per round.
type reconnections struct {
	// away is the most dials in a window from calmAfter to the end of the outage, and back from there until all polled.
	away, back []float64
	// dials counts both.
	dials []float64
	// polling is the time from accepting connections to all polling again.
	polling promise.Times
}

func (c *clientGroup) outage(ctx context.Context, s *reconnections) error {
	if err := c.allPoll(ctx); err != nil {
		return err
	}
	gone := time.Now()
	c.frontend.Stop()
	if err := sleep(ctx, outageLength); err != nil {
		return err
	}
	accepted := time.Now()
	if err := c.frontend.Restart(); err != nil {
		return err
	}
	if err := c.allPoll(ctx); err != nil {
		return err
	}
	s.polling = append(s.polling, time.Since(accepted))
	c.mu.Lock()
	defer c.mu.Unlock()
	calm, _ := slices.BinarySearchFunc(c.dials, gone.Add(calmAfter), time.Time.Compare)
	returned, _ := slices.BinarySearchFunc(c.dials, accepted, time.Time.Compare)
	s.away = append(s.away, float64(busiest(c.dials[calm:returned], window)))
	s.back = append(s.back, float64(busiest(c.dials[returned:], window)))
	s.dials = append(s.dials, float64(len(c.dials)-calm))
	return nil
}

// busiest is the largest number of times, which are in order, within a window.
func busiest(times []time.Time, window time.Duration) int {
	most, first := 0, 0
	for i, at := range times {
		for at.Sub(times[first]) >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// measureReconnections makes outages for a group of managers and one of SDK clients, at the same time.
func measureReconnections(t platform.T, rounds int) (managers, plain reconnections) {
	crowds := []*clientGroup{newClientGroup(t, rebuildByDefault()), newClientGroup(t, sdkAlone())}
	found := []*reconnections{&managers, &plain}
	for range rounds {
		if err := all(crowds, func(i int, c *clientGroup) error { return c.outage(t.Context(), found[i]) }); err != nil {
			t.Fatalf("%d clients: %v", groupSize, err)
		}
	}
	return managers, plain
}

func markdownOfReconnections(p printer, managers, plain reconnections) {
	p("| %d in one process, Temporal unavailable to all for %s | manager | SDK alone | compared |", groupSize,
		outageLength)
	p("|---|---|---|---|")
	row := func(what string, m, s float64) { p("| %s | %.0f | %.0f | %.2f × |", what, m, s, m/s) }
	row(fmt.Sprintf("dials from %s after the loss, until all polled again", calmAfter), figure.Median(managers.dials),
		figure.Median(plain.dials))
	row(fmt.Sprintf("of these, the maximum within %d ms during the outage", window.Milliseconds()),
		figure.Median(managers.away), figure.Median(plain.away))
	row(fmt.Sprintf("the maximum within %d ms after the recovery", window.Milliseconds()), figure.Median(managers.back),
		figure.Median(plain.back))
	p("| from the first accepted connection until all poll again: p50 | %s | %s | %.2f × |",
		promise.Round(managers.polling.At(.5)),
		promise.Round(plain.polling.At(.5)), ratio(managers.polling.At(.5), plain.polling.At(.5)))
	p("| the same, longest | %s | %s | %.2f × |", promise.Round(managers.polling.Worst()),
		promise.Round(plain.polling.Worst()),
		ratio(managers.polling.Worst(), plain.polling.Worst()))
}
