package rpc

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
)

// requestBody is the body of a request. It cannot be read before it is admitted.
type requestBody struct {
	raw     io.ReadCloser // nil for a request without a body
	control *http.ResponseController
	header  http.Header // of the response in HTTP/1; nil otherwise
	began   time.Time

	admission
	content content // nil before the admission
	used    int64   // bytes that were read, compressed and decompressed ones
	failed  error

	mu       sync.Mutex
	ended    bool // the raw body was read to its end
	evicted  bool
	finished bool
	left     bool // read was called
}

// admission is what a body may take.
type admission struct {
	limit        int64         // the most bytes that are read
	whole, stall time.Duration // how long the body may take, and how long one read
	reserved     int64         // the bytes that are counted already
	tooLarge     error

	expanding func() (release func(), err error) // waits for processor time to decompress
	grow      func(n int64) error                // counts further bytes; nil if they are not counted
	read      func()                             // called once when the body has arrived, or its request has ended
	free      func(n int64)                      // returns the bytes that are counted
}

var errNotAdmitted = errors.New("the body of a request was read before its caller was authenticated")

// open replaces the body of a request by one that cannot be read before [bodyLimiter.wrap] admits it, and bounds the
// time in which net/http reads the body by itself.
func (l *bodyLimiter) open(w http.ResponseWriter, r *http.Request) *requestBody {
	if r.Body == nil || r.Body == http.NoBody {
		return &requestBody{ended: true}
	}
	b := &requestBody{raw: r.Body, control: http.NewResponseController(w), began: time.Now()}
	if r.ProtoMajor == 1 {
		b.header = w.Header()
	}
	b.deadline(b.began.Add(strangerTime))
	r.Body = b
	return b
}

// beforeResponse is called before the first byte of the response. In HTTP/1, net/http would first read what the handler
// has left of a body, so that its connection can be used again: a caller that sends slowly would hold the connection,
// and not see its response before.
func (b *requestBody) beforeResponse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.header != nil && !b.ended {
		b.header.Set("Connection", "close")
	}
}

// Read reads the decompressed body.
func (b *requestBody) Read(p []byte) (int, error) {
	if b.content == nil {
		return 0, errNotAdmitted
	}
	if b.failed != nil {
		return 0, b.failed
	}
	n, err := b.content.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed = err
	}
	return n, err
}

// receive waits until the body, or the first message of a stream, has arrived. Reading the body returns the error, if
// there is one.
//
// It is called before the handler, because Connect holds one of its buffers, which keep the largest size that they had,
// from before the first read of a body to the last one: the buffers of all bodies that arrive slowly would take far
// more memory than these.
func (b *requestBody) receive() { b.failed = b.content.receive() }

// Close closes the body.
func (b *requestBody) Close() error { return b.raw.Close() }

// finish ends the use of the body. It is called before the handler returns.
func (b *requestBody) finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.finished = true
	if !b.ended {
		b.deadline(time.Now().Add(lingerTime))
	}
}

// admit makes the body readable.
func (b *requestBody) admit(a admission) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.admission = a
	b.deadline(b.began.Add(a.whole))
}

// release returns what the body has taken.
func (b *requestBody) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave()
	if b.free != nil {
		b.free(b.reserved)
	}
}

// leave calls read once. The caller holds the mutex.
func (b *requestBody) leave() {
	if !b.left {
		b.left = true
		b.read()
	}
}

// evict ends the reading of the body.
func (b *requestBody) evict() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended || b.finished {
		return
	}
	b.evicted = true
	b.deadline(time.Now().Add(-time.Second))
}

// deadline sets the time at which reads fail; the zero time: never. Some readers have no deadlines.
func (b *requestBody) deadline(at time.Time) { _ = b.control.SetReadDeadline(at) }

// count counts bytes that were read or decompressed.
func (b *requestBody) count(n int) error {
	b.used += int64(n)
	if more := b.used - b.reserved; more > 0 && b.grow != nil {
		if err := b.grow(more); err != nil {
			return err
		}
		b.reserved += more
	}
	return nil
}

// rawReader reads the body as it arrives.
type rawReader struct{ *requestBody }

func (r rawReader) Read(p []byte) (int, error) {
	b := r.requestBody
	b.beforeRead()
	if int64(len(p)) > b.limit+1 {
		p = p[:b.limit+1]
	}
	n, err := b.raw.Read(p)
	err = b.afterRead(err)
	if int64(n) > b.limit {
		return int(b.limit), b.tooLarge
	}
	b.limit -= int64(n)
	if counted := b.count(n); counted != nil {
		return 0, counted
	}
	return n, err
}

// beforeRead sets the deadline of a read.
func (b *requestBody) beforeRead() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended || b.evicted || b.stall >= b.whole {
		return // the deadline of the whole body is set
	}
	at, whole := time.Now().Add(b.stall), b.began.Add(b.whole)
	if whole.Before(at) {
		at = whole
	}
	b.deadline(at)
}

// afterRead returns the error of a read in the API's form. At the end of the body the deadline ends, so that a stream
// may stay open.
func (b *requestBody) afterRead(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case errors.Is(err, io.EOF):
		b.ended = true
		b.deadline(time.Time{})
		b.leave()
	case b.evicted && err != nil:
		return answer(errStranger())
	case errors.Is(err, os.ErrDeadlineExceeded):
		return apierror.New(connect.CodeDeadlineExceeded, apierror.DeadlineExceeded, fmt.Sprintf(
			"request body: it did not arrive in time: a whole body may take %s, and a part of it %s", b.whole,
			min(b.stall, b.whole)))
	}
	return err
}
