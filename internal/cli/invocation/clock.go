package invocation

import (
	"net/http"
	"sync/atomic"
	"time"
)

// dateError is how far the header Date may be from the server's clock, which it has in whole seconds, when it arrives.
const dateError = 2 * time.Second

// clock is the difference between the server's clock and that of this machine. It is safe for concurrent use.
type clock struct{ ahead atomic.Int64 }

// Now returns the time by the server's clock, once the server has answered, so that ages of what it reports are
// differences of one clock.
func (s *Invocation) Now() time.Time {
	return s.Streams.Now().Add(time.Duration(s.server.ahead.Load()))
}

// answered reads the server's clock from the header of a response. A difference that the header cannot show counts as
// none.
func (s *Invocation) answered(header http.Header) {
	at, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return
	}
	ahead := at.Sub(s.Streams.Now())
	if ahead.Abs() <= dateError {
		ahead = 0
	}
	s.server.ahead.Store(int64(ahead))
}
