package httpcall

import (
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

// attempts records the requests of one call that leave the process. Followed redirects belong to the request that
// caused them. The transport repeats a safe request if the reused connection is closed under it: that is a separate
// request.
type attempts struct {
	mu       sync.Mutex
	list     []flow.Attempt
	redirect bool // the next request follows a redirect
	// late is the number of requests that have been answered before the transport reported that they were sent, as HTTP/2
	// permits.
	late int
}

// trace returns the hooks by which the transport reports sent requests.
func (a *attempts) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{WroteHeaders: a.sent}
}

func (a *attempts) sent() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.late > 0:
		a.late--
		return
	case a.redirect:
		a.redirect = false
		return
	}
	now := attemptTime()
	if n := len(a.list); n > 0 && a.list[n-1].EndedAt.IsZero() {
		a.list[n-1].EndedAt, a.list[n-1].Unknown = now, true
	}
	a.list = append(a.list, flow.Attempt{StartedAt: now})
}

// follow records that a redirect is about to be followed.
func (a *attempts) follow() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answered()
	a.redirect = true
}

// answered records the request that a response belongs to, if that is not reported yet.
func (a *attempts) answered() {
	if n := len(a.list); a.redirect {
		a.redirect = false
		a.late++
	} else if n == 0 || !a.list[n-1].EndedAt.IsZero() {
		a.late++
		a.list = append(a.list, flow.Attempt{StartedAt: attemptTime()})
	}
}

// end ends the open request, if any, with the status of its response, or 0 if there is none or not all of it, and the
// delay that the response asks for. answered reports whether there was a response.
func (a *attempts) end(answered bool, status int, retryAfter time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if answered {
		a.answered()
	}
	a.redirect = false
	if n := len(a.list); n > 0 && a.list[n-1].EndedAt.IsZero() {
		a.list[n-1].EndedAt, a.list[n-1].Status, a.list[n-1].RetryAfter = attemptTime(), status, retryAfter
	}
}

// all returns the recorded requests.
func (a *attempts) all() []flow.Attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.list
}

// attemptTime returns the current time in the precision of histories.
func attemptTime() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
