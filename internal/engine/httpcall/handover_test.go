package httpcall_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

// patient returns a request of a local activity that is handed over after the given time.
func patient(url string, patience time.Duration) flow.HTTPRequest {
	r := get(url)
	r.Patience, r.Inline = patience, 1<<10
	return r
}

func requireInterrupted(t *testing.T, err error) {
	t.Helper()
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, flow.InterruptedError, app.Type())
}

func TestSlowRequestIsHandedOver(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	answer := make(chan struct{})
	url := origin(t, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		<-answer
		_, _ = io.WriteString(w, `late`)
	})
	c := newCaller(t)
	res, err := c.Call(t.Context(), patient(url, 10*time.Millisecond))
	require.NoError(t, err)
	require.Equal(t, flow.HTTPResponse{Continued: res.Continued}, res)
	require.Equal(t, c.Queue(), res.Continued.Queue)
	close(answer)
	res, err = c.Attach(t.Context(), flow.AttachRequest{ID: res.Continued.ID})
	require.NoError(t, err)
	require.Equal(t, `"late"`, string(res.Content))
	require.Len(t, res.Attempts, 1)
	require.Equal(t, 200, res.Attempts[0].Status)
	require.EqualValues(t, 1, requests.Load())
	c.Drain(t.Context())
}

func TestLargeResponseIsHandedOver(t *testing.T) {
	t.Parallel()
	url := origin(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 2<<10)) })
	c := newCaller(t)
	res, err := c.Call(t.Context(), patient(url, time.Minute))
	require.NoError(t, err)
	require.NotNil(t, res.Continued)
	id := res.Continued.ID
	res, err = c.Attach(t.Context(), flow.AttachRequest{ID: id})
	require.NoError(t, err)
	require.Len(t, res.Content, 2<<10+2)
	_, err = c.Attach(t.Context(), flow.AttachRequest{ID: id})
	requireInterrupted(t, err)
}

// TestCancellationEndsTheRequest cancels a request before its handover, after it, and by the end of the process.
func TestCancellationEndsTheRequest(t *testing.T) {
	t.Parallel()
	arrived, gone := make(chan struct{}), make(chan struct{})
	url := origin(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	c := newCaller(t)
	errs := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := c.Call(ctx, patient(url, time.Minute))
		errs <- err
	}()
	<-arrived
	cancel()
	<-gone
	requireInterrupted(t, <-errs)

	for name, end := range map[string]func(cancel func()){
		"activity": func(cancel func()) { cancel() },
		"process": func(func()) {
			over, cancel := context.WithCancel(t.Context())
			cancel()
			c.Drain(over)
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived }()
		res, err := c.Call(ctx, patient(url, time.Second))
		require.NoError(t, err, name)
		go func() {
			_, err := c.Attach(ctx, flow.AttachRequest{ID: res.Continued.ID})
			errs <- err
		}()
		end(cancel)
		<-gone
		requireInterrupted(t, <-errs)
		cancel()
	}
}

func TestRedirectsBelongToTheirAttempt(t *testing.T) {
	t.Parallel()
	url := origin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/from" {
			http.Redirect(w, r, "/to", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, `1`)
	})
	r := patient(url+"/from", time.Minute)
	r.Redirect = true
	res, err := newCaller(t).Call(t.Context(), r)
	require.NoError(t, err)
	require.Len(t, res.Attempts, 1)
	require.Equal(t, 200, res.Attempts[0].Status)
}

func TestFailuresReportTheirAttempts(t *testing.T) {
	t.Parallel()
	url := origin(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	c := newCaller(t)
	_, err := c.Call(t.Context(), patient(url, time.Minute))
	f := failureOf(t, err)
	require.Len(t, f.Attempts, 1)
	require.Equal(t, http.StatusTeapot, f.Attempts[0].Status)

	_, err = c.Call(t.Context(), patient("http://127.0.0.1:1/", time.Minute))
	require.Empty(t, failureOf(t, err).Attempts, "nothing was sent")
}

// closingOrigin answers the first request on each connection and closes the connection on the second.
func closingOrigin(t *testing.T) (url string, requests *atomic.Int32) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	requests = &atomic.Int32{}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				read := bufio.NewReader(conn)
				for first := true; ; first = false {
					if _, err := http.ReadRequest(read); err != nil {
						return
					}
					requests.Add(1)
					if !first {
						return
					}
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Type: application/json\r\n\r\n1")
				}
			}()
		}
	}()
	return "http://" + l.Addr().String(), requests
}

// TestRequestRepeatedByTheTransport counts the requests that net/http repeats by itself when the reused connection is
// closed.
func TestRequestRepeatedByTheTransport(t *testing.T) {
	t.Parallel()
	url, requests := closingOrigin(t)
	c := newCaller(t)
	_, err := c.Call(t.Context(), patient(url, time.Minute))
	require.NoError(t, err)
	res, err := c.Call(t.Context(), patient(url, time.Minute))
	require.NoError(t, err)
	require.EqualValues(t, 3, requests.Load())
	require.Len(t, res.Attempts, 2)
	require.Equal(t, []any{true, 0, false, 200},
		[]any{res.Attempts[0].Unknown, res.Attempts[0].Status, res.Attempts[1].Unknown, res.Attempts[1].Status})

	once := patient(url, time.Minute)
	once.Once = true
	before := requests.Load()
	for range 3 {
		res, err = c.Call(t.Context(), once)
		require.NoError(t, err)
		require.Len(t, res.Attempts, 1)
	}
	require.Equal(t, before+3, requests.Load())
}
