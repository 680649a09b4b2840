package engine

import (
	"context"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
)

const (
	// MaxBudget is the largest budget, in requests per second.
	MaxBudget = 200
	// MinBudget is the smallest.
	MinBudget = 2
	// budgetIncrease is added after a second in which Temporal was fast, budgetDecrease multiplies after one in which it
	// was slow.
	budgetIncrease, budgetDecrease = 10, 0.5
	// slowShare: Temporal is slow if one request in so many was.
	slowShare = 4
	// slowAfter is the time after which a request is slow.
	slowAfter = 500 * time.Millisecond
	// budgetPeriod is the time between two decisions.
	budgetPeriod = time.Second
	// maxBudgetWait and budgetWaitShare limit how long a request waits for the budget: by a time, and by a share of the
	// time that it has.
	maxBudgetWait   = 2 * time.Second
	budgetWaitShare = 4
	// budgetBurst is the number of requests at once.
	budgetBurst = 20
)

// BudgetWindow has the requests of one period: those that Temporal answered in time, those that were slow or not
// answered, and those that it refused because of its limits.
type BudgetWindow struct{ Served, Slow, Refused int }

// NextBudget returns the budget that follows a period.
func NextBudget(limit float64, w BudgetWindow) float64 {
	switch {
	case w.Refused > 0, w.Slow > 0 && w.Slow*slowShare >= w.Slow+w.Served:
		return max(MinBudget, limit*budgetDecrease)
	case w.Served > 0:
		return min(MaxBudget, limit+budgetIncrease)
	}
	return limit // nothing shows how fast Temporal is
}

// BudgetCounts are the requests since the process started: at once, after a wait, and refused.
type BudgetCounts struct{ Granted, Delayed, Refused int64 }

// BudgetOptions configure a budget.
type BudgetOptions struct {
	Now func() time.Time
}

// Budget limits the requests to Temporal that diagnose runs: descriptions, histories, lists of executions and task
// queues. All of a process share one budget, which shrinks as Temporal slows down, so that they do not take the place
// of starts, signals and polls. It is safe for concurrent use. A nil Budget has no limit.
//
// Its Intercept measures all requests of a client; Take precedes each request that diagnoses. [NextBudget] is the
// decision: additive increase and multiplicative decrease, once a second.
type Budget struct {
	opts    BudgetOptions
	limiter *rate.Limiter

	mu     sync.Mutex
	began  time.Time
	window BudgetWindow
	// open are the requests under way, by number, with the time at which each began.
	open   map[int64]time.Time
	last   int64
	counts BudgetCounts
	// refused is when a request was refused last.
	refused time.Time
}

// NewBudget returns a budget of half the limit.
func NewBudget(o BudgetOptions) *Budget {
	return &Budget{opts: o, limiter: rate.NewLimiter(MaxBudget/2, budgetBurst), began: o.Now(),
		open: map[int64]time.Time{}}
}

// Limit returns the requests per second.
func (b *Budget) Limit() float64 { return float64(b.limiter.Limit()) }

// Counts returns the requests so far.
func (b *Budget) Counts() BudgetCounts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts
}

// RefusedSince reports whether a request was refused at a time or later.
func (b *Budget) RefusedSince(at time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.refused.Before(at)
}

// Take takes one request from the budget. It waits for a short time if necessary. Its error is an
// [apperror.Unavailable], with [diagnose.ErrLimited] as its cause.
func (b *Budget) Take(ctx context.Context) error {
	if b == nil {
		return nil
	}
	now := b.opts.Now()
	b.mu.Lock()
	b.decide(now)
	b.mu.Unlock()
	longest := maxBudgetWait
	if deadline, set := ctx.Deadline(); set {
		longest = min(longest, deadline.Sub(now)/budgetWaitShare)
	}
	reservation := b.limiter.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > longest {
		reservation.CancelAt(now)
		b.count(func(c *BudgetCounts) {
			c.Refused++
			b.refused = now
		})
		const retry = 5 * time.Second
		return apperror.New(apperror.Unavailable, apperror.EngineUnavailable,
			"diagnosis is limited to %.0f requests per second, because Temporal is slow, and they are used up: what it was to "+
				"find out is not known",
			b.Limit()).WithRetry(retry).WithCause(diagnose.ErrLimited)
	}
	if wait == 0 {
		b.count(func(c *BudgetCounts) { c.Granted++ })
		return nil
	}
	b.count(func(c *BudgetCounts) { c.Delayed++ })
	if !loop.Sleep(ctx, wait) {
		return ctx.Err()
	}
	return nil
}

func (b *Budget) count(change func(*BudgetCounts)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.counts)
}

// Intercept measures a request.
func (b *Budget) Intercept(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	if b == nil || waitsForBudget(method) {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	ended := b.begin()
	err := invoke(ctx, method, req, reply, cc, opts...)
	ended(err)
	return err
}

// waitsForBudget reports whether a request waits for something other than Temporal, or may take long in a fast one.
func waitsForBudget(method string) bool {
	name := method[strings.LastIndexByte(method, '/')+1:]
	for _, prefix := range []string{
		"Poll", "Query", "Update", "List", "Count", "GetWorkflowExecutionHistory", "ExecuteMultiOperation",
		"ShutdownWorker"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// begin records the start of a request, and returns the function that records its end.
func (b *Budget) begin() (ended func(err error)) {
	now := b.opts.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	number := b.last
	b.open[number] = now
	return func(err error) {
		now := b.opts.Now()
		b.mu.Lock()
		defer b.mu.Unlock()
		began := b.open[number]
		delete(b.open, number)
		switch code := status.Code(err); {
		case code == codes.Canceled: // its caller did not wait for the answer
		case code == codes.ResourceExhausted:
			b.window.Refused++
		case code == codes.Unavailable, code == codes.DeadlineExceeded, now.Sub(began) > slowAfter:
			b.window.Slow++
		default:
			b.window.Served++
		}
		b.decide(now)
	}
}

// decide ends the period if its time has passed. Requests that are under way for too long count as slow, so that a
// Temporal that does not answer is noticed before their deadlines.
func (b *Budget) decide(now time.Time) {
	if now.Sub(b.began) < budgetPeriod {
		return
	}
	w := b.window
	for _, began := range b.open {
		if now.Sub(began) > slowAfter {
			w.Slow++
		}
	}
	b.limiter.SetLimitAt(now, rate.Limit(NextBudget(b.Limit(), w)))
	b.began, b.window = now, BudgetWindow{}
}
