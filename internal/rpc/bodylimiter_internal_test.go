package rpc

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
	"github.com/signalbox-dev/signalbox/internal/rpc/rest"
)

// pipes is a listener whose connections are pipes, which follow the time of the test.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// beginning calls the body before the response begins.
type beginning struct {
	http.ResponseWriter

	body *requestBody
}

func (b beginning) WriteHeader(status int) {
	b.body.beforeResponse()
	b.ResponseWriter.WriteHeader(status)
}

// serve answers the requests of a connection with the size of their bodies. Those below /caller have an actor.
func serve(t *testing.T, opts bodyOptions) net.Conn {
	t.Helper()
	bodies := newBodyLimiter(opts)
	count := bodies.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, problem := rest.ReadBody(r, 1<<20)
		if problem != nil {
			apierror.WriteREST(w, problem, apierror.HTTPStatus(problem))
			return
		}
		fmt.Fprint(w, len(raw))
	}))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := bodies.open(w, r)
		defer body.finish()
		if strings.HasPrefix(r.URL.Path, "/caller") {
			r = r.WithContext(auth.WithActor(r.Context(), auth.Actor{ID: "1"}))
		}
		count.ServeHTTP(beginning{w, body}, r)
	})}
	listener := make(pipes, 1)
	client, conn := net.Pipe()
	listener <- conn
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		require.NoError(t, client.Close())
		close(listener)
		require.NoError(t, server.Close())
		<-served
	})
	return client
}

// drip sends a request with one byte of its body at each interval, and returns the time until the response and its
// status.
func drip(t *testing.T, conn net.Conn, path string, interval time.Duration, count int) (time.Duration, int) {
	t.Helper()
	began := time.Now()
	_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", path, count)
	require.NoError(t, err)
	answered := make(chan struct{})
	defer close(answered)
	go func() {
		for range count {
			select {
			case <-answered:
				return
			case <-time.After(interval):
			}
			if _, err := io.WriteString(conn, "x"); err != nil {
				return
			}
		}
	}()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return time.Since(began), res.StatusCode
}

func TestWholeBodyHasOneDeadline(t *testing.T) {
	t.Parallel()
	opts := bodyOptions{MaxBytes: 1 << 20, StallTimeout: 30 * time.Second}
	for name, test := range map[string]struct {
		path     string
		interval time.Duration
		count    int
		after    time.Duration
		status   int
	}{
		"stranger, one byte per second":      {"/stranger", time.Second, 1000, 10 * time.Second, http.StatusGatewayTimeout},
		"stranger in time":                   {"/stranger", time.Second, 9, 9 * time.Second, http.StatusOK},
		"caller, one byte per second":        {"/caller", time.Second, 1000, time.Minute, http.StatusGatewayTimeout},
		"caller in time":                     {"/caller", time.Second, 50, 50 * time.Second, http.StatusOK},
		"caller, one byte per half a minute": {"/caller", 31 * time.Second, 10, 30 * time.Second, http.StatusGatewayTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				took, status := drip(t, serve(t, opts), test.path, test.interval, test.count)
				require.Equal(t, test.after, took)
				require.Equal(t, test.status, status)
			})
		})
	}
}

func TestPathsWithLargeBodies(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int{
		"/caller": http.StatusRequestEntityTooLarge, "/caller/large/x": http.StatusOK,
		"/stranger": http.StatusRequestEntityTooLarge,
	} {
		conn := serve(t, bodyOptions{
			MaxBytes: 1000, LargePaths: "/caller/large/", LargeBytes: 10_000, StallTimeout: time.Minute})
		go func() {
			_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000\r\n\r\n%s", path,
				strings.Repeat("x", 8000))
		}()
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, want, res.StatusCode, path)
	}
}

func TestBodyIsNotReadBeforeItIsAdmitted(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("secret"))
	body := newBodyLimiter(bodyOptions{MaxBytes: 1 << 20}).open(httptest.NewRecorder(), r)
	defer body.finish()
	got, err := io.ReadAll(r.Body)
	require.ErrorContains(t, err, "before its caller was authenticated")
	require.Empty(t, got)
}
