package connection_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/internal/stopwatch"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// patience is the limit for events without a promised time.
const patience = platform.Patience

// The limits that the product promises for state changes.
var (
	soonBusy = promise.Limit(10 * time.Second) // until the state is correct, with traffic
	soonIdle = promise.Limit(25 * time.Second) // and without
)

// subject is a manager under test, with one worker set and a record of the activities' executions.
type subject struct {
	*conn.Manager

	queue string
	label string
	lines *platform.Log

	mu    sync.Mutex
	began map[string]bool // by order ID
	done  map[string]int
}

// order is the input of the workflow: hold keeps its activity busy.
type order struct {
	ID   string
	Hold time.Duration
}

// newSubject makes a manager with a worker set and starts it. It is stopped at the end of the test.
func newSubject(t *testing.T, options conn.Options) *subject {
	t.Helper()
	s := prepare(t, options)
	s.begin(t)
	return s
}

// prepare is newSubject without the start.
func prepare(t *testing.T, options conn.Options) *subject {
	t.Helper()
	s := &subject{queue: fmt.Sprintf("orders-%08x", rand.Uint32()), label: fmt.Sprintf("%s-%08x", t.Name(), rand.Uint32()),
		lines: &platform.Log{}, began: map[string]bool{}, done: map[string]int{}}
	options.Logger = slog.New(slog.NewTextHandler(s.lines, &slog.HandlerOptions{Level: slog.LevelInfo}))
	var err error
	s.Manager, err = conn.New(options)
	require.NoError(t, err)
	require.NoError(t, s.Register("orders", s.worker(s.queue, worker.Options{})))
	return s
}

// begin starts the manager with a label on its goroutines, so that they can be counted apart from others.
func (s *subject) begin(t *testing.T) {
	t.Helper()
	pprof.Do(t.Context(), pprof.Labels("subject", s.label), func(ctx context.Context) {
		began := time.Now()
		require.NoError(t, s.Start(ctx))
		require.Less(t, time.Since(began), promise.Limit(time.Second), "Start waits for nothing")
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
		if t.Failed() {
			t.Logf("--- manager ---\n%s\n%+v", s.lines.String(), s.Status())
		}
	})
}

func (s *subject) worker(queue string, options worker.Options) conn.Factory {
	return func(c client.Client) (worker.Worker, error) {
		w := worker.New(c, queue, options)
		w.RegisterWorkflowWithOptions(process, workflow.RegisterOptions{Name: "process"})
		w.RegisterActivityWithOptions(s.charge, activity.RegisterOptions{Name: "charge"})
		return w, nil
	}
}

// process charges an order. A charge that was sent over a lost connection is retried after its timeout.
func process(ctx workflow.Context, o order) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 20 * time.Second})
	return workflow.ExecuteActivity(ctx, "charge", o).Get(ctx, nil)
}

func (s *subject) charge(ctx context.Context, o order) error {
	s.mu.Lock()
	s.began[o.ID] = true
	s.mu.Unlock()
	if o.Hold > 0 {
		timer := time.NewTimer(o.Hold)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[o.ID]++
	return nil
}

// charges returns how often an order was charged.
func (s *subject) charges(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done[id]
}

// begun reports whether the charge of an order has begun.
func (s *subject) begun(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began[id]
}

// callLimit bounds a request that may meet an outage.
const callLimit = 5 * time.Second

// start starts a workflow over the current client.
func (s *subject) start(ctx context.Context, o order, limit time.Duration) error {
	c, release, err := s.Borrow()
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err = c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: o.ID, TaskQueue: s.queue}, "process", o)
	return err
}

// mustStart starts a workflow as soon as that is possible and returns its ID.
func (s *subject) mustStart(t *testing.T, o order) string {
	t.Helper()
	if o.ID == "" {
		o.ID = fmt.Sprintf("%s-%08x", s.queue, rand.Uint32())
	}
	platform.Eventually(t, patience, func() string {
		if err := s.start(t.Context(), o, callLimit); err != nil {
			return err.Error()
		}
		return ""
	})
	return o.ID
}

// waitForCharge waits until an order was charged.
func (s *subject) waitForCharge(t *testing.T, id string, limit time.Duration) {
	t.Helper()
	platform.Eventually(t, limit, func() string {
		if s.charges(id) == 0 {
			return "order " + id + " was not charged"
		}
		return ""
	})
}

// differsFrom returns the difference of the status from a state and a kind, or "".
func (s *subject) differsFrom(state conn.State, kind conn.Kind) string {
	if now := s.Status(); now.State != state || now.Kind != kind {
		return fmt.Sprintf("is %s %s (%s), not %s %s", now.State, now.Kind, now.LastError, state, kind)
	}
	return ""
}

// waitForState waits for a state and a kind and returns how long that took.
func (s *subject) waitForState(t *testing.T, limit time.Duration, state conn.State, kind conn.Kind) time.Duration {
	t.Helper()
	began := time.Now()
	platform.Eventually(t, limit, func() string { return s.differsFrom(state, kind) })
	return time.Since(began)
}

// notConnected returns how the status differs from a connection that is used, or "". On a machine that runs other
// tests, Temporal may answer slowly, which is no fault of the connection.
func (s *subject) notConnected() string {
	now := s.Status()
	slow := now.State == conn.Degraded && (now.Kind == conn.Slow || now.Kind == conn.Limited) && !promise.Full()
	if now.State != conn.Connected && !slow {
		return fmt.Sprintf("is %s %s (%s)", now.State, now.Kind, now.LastError)
	}
	return ""
}

// waitForConnection waits until the connection is used and returns how long that took.
func (s *subject) waitForConnection(t *testing.T, limit time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	platform.Eventually(t, limit, s.notConnected)
	return time.Since(began)
}

// waitForPolling waits until every worker set runs on the current generation and polls.
func (s *subject) waitForPolling(t *testing.T, limit time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	platform.Eventually(t, limit, func() string {
		if wrong := s.notConnected(); wrong != "" {
			return wrong
		}
		now := s.Status()
		for _, w := range now.Workers {
			if !w.Running || !w.Polling || w.Generation != now.Generation {
				return fmt.Sprintf("generation %d: %+v", now.Generation, w)
			}
		}
		return ""
	})
	return time.Since(began)
}

// goroutines counts the manager's goroutines.
func (s *subject) goroutines(t *testing.T) int {
	t.Helper()
	total := 0
	for block := range strings.SplitSeq(profile(t), "\n\n") {
		total += labelled(block, s.label)
	}
	return total
}

// stacks returns the stacks of the manager's goroutines.
func (s *subject) stacks(t *testing.T) string {
	t.Helper()
	var out []string
	for block := range strings.SplitSeq(profile(t), "\n\n") {
		if labelled(block, s.label) > 0 {
			out = append(out, block)
		}
	}
	return strings.Join(out, "\n\n")
}

func profile(t *testing.T) string {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&text, 1))
	return text.String()
}

// labelled counts the goroutines of one block of a profile that have a label: a line "N @ …", then one of labels, then
// the stack. Workflows that the SDK caches do not count: the cache belongs to all workers of the process.
func labelled(block, label string) int {
	if strings.Contains(block, "internal.(*coroutineState)") {
		return 0
	}
	for line := range strings.Lines(block) {
		count, _, ok := strings.Cut(line, " @ ")
		if ok && strings.Contains(block, strconv.Quote(label)) {
			n, _ := strconv.Atoi(count) // the head of the profile counts nothing
			return n
		}
	}
	return 0
}

// resources are the resources of an idle manager.
type resources struct{ goroutines int }

// waitForIdle waits until no generation drains any more and the number of goroutines has decreased, and returns the
// resources.
func (s *subject) waitForIdle(t *testing.T) resources {
	t.Helper()
	s.waitForPolling(t, patience)
	least := 0
	since := time.Now()
	platform.Eventually(t, patience, func() string {
		if s.Status().Draining > 0 {
			return "a generation is still draining"
		}
		if n := s.goroutines(t); least == 0 || n < least {
			least, since = n, time.Now()
		}
		if time.Since(since) < 2*time.Second {
			return "the number of goroutines still falls"
		}
		return ""
	})
	require.Positive(t, least, "the goroutines of the manager cannot be distinguished")
	return resources{least}
}

// requireNoLeak requires that a manager holds no more than before; requests in progress account for a few
// goroutines.
func (s *subject) requireNoLeak(t *testing.T, before resources) {
	t.Helper()
	const slack = 6
	s.waitForPolling(t, patience)
	platform.Eventually(t, patience, func() string {
		if d := s.Status().Draining; d > 0 {
			return fmt.Sprintf("%d generations are still draining", d)
		}
		if n := s.goroutines(t); n > before.goroutines+slack {
			return fmt.Sprintf("%d goroutines, %d before", n, before.goroutines)
		}
		return ""
	})
}

// watch calls Client and Status continuously, as every request of a program does, and requires that neither ever
// blocks. Time in which the machine did not run this process does not count.
func (s *subject) watch(t *testing.T) {
	t.Helper()
	limit := 500 * time.Millisecond
	if !promise.Full() { // the goroutine that it waits for may not run although this process does
		limit = 5 * time.Second
	}
	clock := stopwatch.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	var took promise.Times
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			began := clock.Elapsed()
			_, _ = s.Client() // only the duration matters
			_ = s.Status()
			took = append(took, clock.Elapsed()-began)
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
		promise.Record(t, promise.Figure{
			Promise: "P-C4", What: "Client() and Status() together, asked every ms while the test breaks things",
			Aim: "never blocks", Trials: len(took), Figure: took.String()})
		if worst := took.Worst(); worst > limit {
			t.Error(platform.TooSlow("Client() and Status()", worst, limit))
		}
	})
}

// traffic starts workflows at a steady pace, and slower where Temporal does not keep up: it leaves at most mostOpen of
// them open.
type traffic struct {
	limit time.Duration // of each start
	stop  func()

	mu       sync.Mutex
	flying   int
	started  []string
	failures []failure
}

// mostOpen is how many orders of a traffic are open at once: those of a machine with time to spare are far fewer.
const mostOpen = 50

// failure is a start that was sent and failed. Starts that Client refused are not included.
type failure struct {
	id  string
	at  time.Time
	err error
}

func (f failure) String() string {
	return fmt.Sprintf("%s at %s: %v", f.id, f.at.Format(time.StampMilli), f.err)
}

// crowdedPace is the interval of the starts on a machine that runs a dozen other tests.
const crowdedPace = 100 * time.Millisecond

// traffic starts traffic that may meet an outage.
func (s *subject) traffic(t *testing.T, every time.Duration) *traffic {
	t.Helper()
	return s.trafficOf(t, every, callLimit)
}

// patientTraffic is traffic that must not fail: its requests wait as long as a busy machine needs.
func (s *subject) patientTraffic(t *testing.T, every time.Duration) *traffic {
	t.Helper()
	return s.trafficOf(t, every, patience)
}

func (s *subject) trafficOf(t *testing.T, every, limit time.Duration) *traffic {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	if !promise.Full() {
		every = max(every, crowdedPace)
	}
	out := &traffic{limit: limit}
	name := fmt.Sprintf("%s-%08x", s.queue, rand.Uint32())
	var flying sync.WaitGroup
	flying.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for n := 0; ; n++ {
			select {
			case <-ticker.C:
				if !out.admit(s) {
					continue
				}
				flying.Go(func() { out.send(context.WithoutCancel(ctx), s, fmt.Sprintf("%s-%06d", name, n)) })
			case <-ctx.Done():
				return
			}
		}
	})
	out.stop = func() { cancel(); flying.Wait() }
	t.Cleanup(out.stop)
	return out
}

// admit reports whether one more order may be started, and counts it as being sent.
func (f *traffic) admit(s *subject) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !promise.Full() {
		open := f.flying
		for _, id := range f.started {
			if s.charges(id) == 0 {
				open++
			}
		}
		if open >= mostOpen {
			return false
		}
	}
	f.flying++
	return true
}

func (f *traffic) send(ctx context.Context, s *subject, id string) {
	at := time.Now()
	err := s.start(ctx, order{ID: id}, f.limit)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flying--
	if _, refused := errors.AsType[*conn.DownError](err); refused {
		return
	}
	if err != nil {
		f.failures = append(f.failures, failure{id, at, err})
		return
	}
	f.started = append(f.started, id)
}

// waitForStart waits until a workflow was started.
func (f *traffic) waitForStart(t *testing.T) {
	t.Helper()
	platform.Eventually(t, patience, func() string {
		if len(f.accepted()) == 0 {
			return fmt.Sprintf("nothing was ever started: %v", f.failed())
		}
		return ""
	})
}

func (f *traffic) accepted() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.started...)
}

func (f *traffic) failed() []failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]failure(nil), f.failures...)
}

// requireChargedOnce stops the traffic and requires that each started order was charged exactly once.
func (f *traffic) requireChargedOnce(t *testing.T, s *subject) {
	t.Helper()
	f.requireCharged(t, s)
	for _, id := range f.accepted() {
		require.Equal(t, 1, s.charges(id), "order %s", id)
	}
}

// requireCharged is requireChargedOnce for outages in which Temporal may retry an activity whose answer it never
// received.
func (f *traffic) requireCharged(t *testing.T, s *subject) {
	t.Helper()
	f.waitForStart(t)
	f.stop()
	for _, id := range f.accepted() {
		s.waitForCharge(t, id, patience)
	}
}

// promptOptions returns the options for an address, or for an address with a namespace, with the product's limits of
// answers. They are for tests in which Temporal does not answer.
func promptOptions(address string, namespace ...string) conn.Options {
	return conn.Options{Client: client.Options{HostPort: address, Namespace: strings.Join(namespace, "")}}
}

// optionsFor is promptOptions for tests in which Temporal answers or refuses: however long its answers take on a
// machine that runs other tests, they are no outage.
func optionsFor(address string, namespace ...string) conn.Options {
	options := promptOptions(address, namespace...)
	if !promise.Full() {
		options.SlowAfter, options.CheckTimeout, options.DrainGrace = 30*time.Second, time.Minute, 2*time.Second
	}
	return options
}

// rebuilding returns the options with every outage of two seconds causing new workers.
func rebuilding(options conn.Options) conn.Options {
	options.RebuildAfter = 2 * time.Second
	return options
}

// waitFor waits for the duration of an outage.
func waitFor(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// stop stops the manager during a test, within its budget, and requires that none of its goroutines is left.
func (s *subject) stop(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), promise.Limit(20*time.Second))
	defer cancel()
	require.NoError(t, s.Stop(ctx))
	require.Equal(t, conn.Closed, s.Status().State)
	platform.Eventually(t, soonBusy, func() string {
		if n := s.goroutines(t); n > 0 {
			return fmt.Sprintf("%d goroutines are left after Stop:\n%s", n, s.stacks(t))
		}
		return ""
	})
}
