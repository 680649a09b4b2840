package rpc

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
	"github.com/signalbox-dev/signalbox/internal/rpc/permission"
	"github.com/signalbox-dev/signalbox/internal/semaphore"
)

const (
	// strangerBytes is the most that is read of a request without a valid token, before and after decompression.
	strangerBytes = 4 << 10
	// strangerTime is how long such a body may take to arrive, from the end of the headers.
	strangerTime = 10 * time.Second
	// callerTime is how long the body of an authenticated caller may take to arrive.
	callerTime = time.Minute

	// strangersEach and strangersAll bound the bodies of strangers that have not arrived completely: of one address, and
	// of all.
	strangersEach = 64
	strangersAll  = 256
	// readingEach and readingAll bound those of authenticated callers: of one token, and of all.
	readingEach = 256
	readingAll  = 1024
	// memoryAll is the memory that the bodies of authenticated callers may take together, unless requests may be very
	// large.
	memoryAll = 64 << 20
	// memoryRequests is the number of the largest requests for which there is memory in any case.
	memoryRequests = 4

	// lingerTime is how long net/http may read what a handler has left of a body.
	lingerTime = time.Second
	// overhead is what the frames of a message in gRPC and Connect add to its size.
	overhead = 1 << 10
)

// bodyOptions configure a bodyLimiter.
type bodyOptions struct {
	// MaxBytes is the largest request of an authenticated caller.
	MaxBytes int64
	// LargePaths, unless empty, is the beginning of the paths whose requests may have LargeBytes instead.
	LargePaths string
	LargeBytes int64
	// StallTimeout is how long one read of the body of an authenticated caller may take.
	StallTimeout time.Duration
	// Refused, if set, is called with the reason of each refusal.
	Refused func(ctx context.Context, reason string)
}

// bodyLimiter bounds the bodies of a server's requests: their size, the time until they have arrived, their number, and
// the memory of all of them together.
//
//	bodies := newBodyLimiter(bodyOptions{MaxBytes: 4 << 20, StallTimeout: 30 * time.Second})
//	body := bodies.open(w, r)                        // first: nothing can read the body from here on
//	defer body.finish()
//	authenticate(bodies.wrap(handler)).ServeHTTP(w, r) // wrap admits the body, or answers with 429 or 413
//
// A request is admitted after its caller was authenticated, by its headers alone. A request without an actor is that of
// a stranger: at most [strangerBytes] of it are read, within [strangerTime]. Strangers hold few bodies, counted by
// address; a further one takes the place of the one that has been read for the longest time, which is answered with
// 429. So slow bodies do not lock out a sign-in, which arrives within milliseconds.
//
// The bodies of authenticated callers share a budget of memory until their requests end, and of bodies that have not
// arrived completely. What is beyond it is answered with 429 before it is read. One caller alone can use at most half
// of the memory; see [callers].
//
// A body is handed on when it has arrived completely; that of a stream, message by message. One that is compressed is
// decompressed here, so that what it expands to is counted as well: behind it no request is compressed.
type bodyLimiter struct {
	opts      bodyOptions
	strangers *strangers
	callers   *callers
	expanding *semaphore.Keyed // bodies that are being decompressed, by caller
}

// newBodyLimiter returns a limiter.
func newBodyLimiter(opts bodyOptions) *bodyLimiter {
	if opts.Refused == nil {
		opts.Refused = func(context.Context, string) {}
	}
	return &bodyLimiter{
		opts:      opts,
		strangers: newStrangers(strangersEach, strangersAll),
		expanding: semaphore.NewKeyed(runtime.GOMAXPROCS(0) / 2),
		callers: newCallers(bounds{
			memory: max(memoryAll, memoryRequests*opts.MaxBytes), fair: opts.MaxBytes, readingEach: readingEach,
			readingAll: readingAll,
		}),
	}
}

// wrap returns a handler that admits the body of a request, and waits until it has arrived, before it calls next. The
// request's context has the actor, or none for a stranger.
func (l *bodyLimiter) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		release, err := l.admit(r)
		if err != nil {
			if f, ok := apperror.From(err); ok {
				l.opts.Refused(r.Context(), f.Reason)
			}
			failure, _ := apierror.Error(err)
			apierror.Write(w, r, failure)
			return
		}
		defer release()
		if body, ok := r.Body.(*requestBody); ok {
			body.receive()
		}
		next.ServeHTTP(w, r)
	})
}

// admit makes the body of a request readable, and returns the function to call after the request.
func (l *bodyLimiter) admit(r *http.Request) (release func(), err error) {
	actor, known := auth.ActorFrom(r.Context())
	body, ok := r.Body.(*requestBody)
	switch {
	case !ok && known && expands(r):
		key := keyOf(actor)
		if !l.callers.grow(key, l.opts.MaxBytes) {
			return nil, errCaller()
		}
		return func() { l.callers.free(key, l.opts.MaxBytes) }, nil
	case !ok:
		return func() {}, nil
	case known:
		err = l.admitCaller(r, body, keyOf(actor))
	default:
		err = l.admitStranger(r, body)
	}
	return body.release, err
}

// keyOf returns what a caller's bodies are counted by: its token, or its kind where there are no tokens.
func keyOf(a auth.Actor) string {
	if a.ID != "" {
		return a.ID
	}
	return a.Kind
}

func (l *bodyLimiter) admitCaller(r *http.Request, b *requestBody, key string) error {
	most := l.opts.MaxBytes
	if l.opts.LargePaths != "" && strings.HasPrefix(r.URL.Path, l.opts.LargePaths) {
		most = l.opts.LargeBytes
	}
	limit := most + overhead
	if r.ContentLength > limit {
		return apierror.TooLarge(most)
	}
	reserved := max(r.ContentLength, 0)
	if !l.callers.enter(key, reserved) {
		return errCaller()
	}
	b.admit(admission{
		limit: limit, whole: callerTime, stall: l.opts.StallTimeout, reserved: reserved,
		tooLarge:  apierror.TooLarge(most),
		expanding: func() (func(), error) { return l.expanding.Acquire(r.Context(), key) },
		grow: func(n int64) error {
			if !l.callers.grow(key, n) {
				l.opts.Refused(r.Context(), apierror.TooManyBodies)
				return answer(errCaller())
			}
			return nil
		},
		read: func() { l.callers.leave(key) },
		free: func(n int64) { l.callers.free(key, n) },
	})
	b.decode(r, most)
	return nil
}

func (l *bodyLimiter) admitStranger(r *http.Request, b *requestBody) error {
	tooLarge := apierror.New(connect.CodeResourceExhausted, apperror.RequestTooLarge, fmt.Sprintf(
		"the request is larger than %d bytes, the most that is read of a request without a valid token in its headers; "+
			"send less", strangerBytes))
	if r.ContentLength > strangerBytes {
		return tooLarge
	}
	from := permission.Network(r.RemoteAddr)
	b.admit(admission{
		limit: strangerBytes, whole: strangerTime, stall: strangerTime, tooLarge: tooLarge,
		expanding: func() (func(), error) { return l.expanding.Acquire(r.Context(), from) },
		read:      func() { l.strangers.leave(b) },
	})
	if evicted := l.strangers.enter(b, from); evicted != nil {
		l.opts.Refused(r.Context(), apierror.TooManyBodies)
		evicted.evict()
	}
	b.decode(r, strangerBytes)
	return nil
}

func errCaller() error {
	return apperror.New(apperror.Exhausted, apierror.TooManyBodies,
		"the requests of this caller, or of all callers, whose bodies are read or processed at the moment reach the bound "+
			"of this server; send fewer at a time, or retry later").
		WithRetry(time.Second)
}

func errStranger() error {
	return apperror.New(apperror.Exhausted, apierror.TooManyBodies,
		"other requests without a valid token in their headers took the place of this one before its body had arrived; "+
			"send it again, faster").
		WithRetry(time.Second)
}

// answer returns an error in the form that Connect passes on unchanged when reading a body fails with it.
func answer(err error) error {
	e, _ := apierror.Error(err)
	return e
}

// expands reports whether a request without a body has a compressed message in its query, as Connect's GET requests
// may.
func expands(r *http.Request) bool {
	compression := r.URL.Query().Get("compression")
	return compression != "" && compression != "identity"
}
