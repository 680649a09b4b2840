package httpcall

import (
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

// attempts records the requests of one call that leave the process. Redirections that are followed belong to the request that led to
// them. The transport sends a safe request again where the connection that it reused is closed under it: that is a request of its own.
type attempts struct {
	mu       sync.Mutex
	list     []flow.Attempt
	redirect bool // the next request follows a redirection
}

// trace makes the hooks by which the transport reports what it sends.
func (a *attempts) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{WroteHeaders: a.sent}
}

func (a *attempts) sent() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.redirect {
		a.redirect = false
		return
	}
	now := attemptTime()
	if n := len(a.list); n > 0 && a.list[n-1].EndedAt.IsZero() {
		a.list[n-1].EndedAt, a.list[n-1].Unknown = now, true
	}
	a.list = append(a.list, flow.Attempt{StartedAt: now})
}

// follow notes that a redirection is about to be followed.
func (a *attempts) follow() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.redirect = true
}

// end ends the open request, if there is one: with the status of its answer, or 0 where there is none.
func (a *attempts) end(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.redirect = false
	if n := len(a.list); n > 0 && a.list[n-1].EndedAt.IsZero() {
		a.list[n-1].EndedAt, a.list[n-1].Status = attemptTime(), status
	}
}

// all returns what was sent, where the request asks for it.
func (a *attempts) all(r flow.HTTPRequest) []flow.Attempt {
	if !r.ReportAttempts {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.list
}

// attemptTime is the time as histories keep it.
func attemptTime() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
