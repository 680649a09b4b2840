// Package httpcall performs the HTTP exchanges behind `call: http`: the activity that package flow calls by the name
// [flow.HTTPActivity].
//
// Make one [Caller] per worker with [New], register [Caller.Call], and [Caller.Close] it when the worker has stopped.
// Connections are kept and shared between calls; cookies are not.
//
// # Where it connects to
//
// Only to public addresses, and to the networks that [Options.AllowPrivate] names. The check is made on the address of
// each connection, after the name was resolved, so a name that changes its address between check and use gains
// nothing, and every redirect is checked again. Proxies named in the environment are not used: the guard could not see
// behind them, and what a workflow reaches must not depend on the shell its worker was started from.
//
// # Redirections
//
// Without `redirect` a status of 300 to 399 is an error and nothing is followed. With it up to 10 redirections are
// followed; one that cannot be followed (304, or no Location) is the result. What leaves the origin that the workflow
// named carries no headers of the workflow's making other than Accept and Content-Type, and https never falls back to http.
//
// # Failures
//
// Every failed call is a [flow.CallError]; Temporal never retries it, since the language's `try` decides that:
//
//	what happened                                      type            status               category
//	the origin answered with an error status           communication   the answer's         answered
//	answer announced as JSON that is none              communication   502                  answered
//	name not resolved, connection refused              communication   503                  transport
//	TLS failed, connection cut, answer not HTTP        communication   502                  transport
//	no complete answer in time                         communication   504                  transport
//	answer over the size limit                         communication   502                  too_large
//	address or redirection not allowed by the guard    authorization   403                  refused
//	URL, method or header that cannot be sent          configuration   400                  refused
//
// A status of 503 means that nothing was sent. With 502 and 504 nobody knows whether the origin acted.
// A call that ends because its activity was canceled returns the context's error instead.
package httpcall

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

const (
	maxRedirects           = 10
	maxResponseHeaderBytes = 64 << 10
	// Where a request does not bound itself.
	defaultTimeout          = 30 * time.Second
	defaultMaxResponseBytes = 1 << 20
	// Origins that vanish without closing are noticed by TCP keep-alive, idle connections are given back.
	idleConnTimeout     = 60 * time.Second
	keepAlive           = 15 * time.Second
	maxIdleConns        = 256
	maxIdleConnsPerHost = 32
)

// Options say what a [Caller] may do.
type Options struct {
	// AllowPrivate names networks that may be called although they are not public.
	AllowPrivate []netip.Prefix
	// UserAgent is sent where a workflow gives none of its own.
	UserAgent string
}

// Caller performs HTTP calls. It is safe for concurrent use.
type Caller struct {
	client    *http.Client
	transport *http.Transport
	userAgent string
}

// New makes a caller. It starts nothing until its first call.
func New(o Options) *Caller {
	g := guard{allowed: o.AllowPrivate}
	dialer := &net.Dialer{KeepAlive: keepAlive, ControlContext: g.control}
	transport := &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           maxIdleConns,
		MaxIdleConnsPerHost:    maxIdleConnsPerHost,
		IdleConnTimeout:        idleConnTimeout,
		MaxResponseHeaderBytes: maxResponseHeaderBytes,
	}
	return &Caller{
		client:    &http.Client{Transport: transport, CheckRedirect: checkRedirect},
		transport: transport,
		userAgent: o.UserAgent,
	}
}

// Close gives back the connections that are kept. Calls in progress are not affected.
func (c *Caller) Close() { c.transport.CloseIdleConnections() }

// Call is the activity. Its errors are described at the package.
func (c *Caller) Call(ctx context.Context, r flow.HTTPRequest) (flow.HTTPResponse, error) {
	if r.Timeout <= 0 {
		r.Timeout = defaultTimeout
	}
	if r.MaxResponseBytes <= 0 {
		r.MaxResponseBytes = defaultMaxResponseBytes
	}
	if !r.Local {
		stop := heartbeat(ctx)
		defer stop()
	}
	bounded, cancel := context.WithTimeoutCause(ctx, r.Timeout, errTimeLimit)
	defer cancel()

	req, err := c.build(withRedirects(bounded, r.Redirect), r)
	if err != nil {
		return flow.HTTPResponse{}, invalidRequest(r, err)
	}
	res, err := c.client.Do(req)
	if err != nil {
		return flow.HTTPResponse{}, transportFailure(ctx, bounded, r, err)
	}
	defer func() { _ = res.Body.Close() }() // all that was wanted has been read

	body, err := readBody(res.Body, r.MaxResponseBytes)
	if err != nil {
		return flow.HTTPResponse{}, transportFailure(ctx, bounded, r, err)
	}
	if !acceptable(res.StatusCode, r.Redirect) {
		return flow.HTTPResponse{}, answered(r, res, body)
	}
	return respond(r, res, body)
}

// acceptable tells whether a status is a result. The client has already swallowed 1xx.
func acceptable(status int, redirect bool) bool {
	if redirect {
		return status >= 200 && status <= 399
	}
	return status >= 200 && status <= 299
}

// heartbeat keeps a long call alive, and open to cancellation, until the returned function is called.
func heartbeat(ctx context.Context) func() {
	if !activity.IsActivity(ctx) {
		return func() {}
	}
	limit := activity.GetInfo(ctx).HeartbeatTimeout
	if limit <= 0 {
		return func() {}
	}
	done, joined := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(joined)
		// A third leaves room for one beat that is lost.
		ticker := time.NewTicker(limit / 3)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				activity.RecordHeartbeat(ctx)
			case <-done:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		close(done)
		<-joined
	}
}

type redirectsKey struct{}

func withRedirects(ctx context.Context, follow bool) context.Context {
	return context.WithValue(ctx, redirectsKey{}, follow)
}

// checkRedirect decides on following a redirection. The address it leads to is checked by the guard as ever.
func checkRedirect(next *http.Request, via []*http.Request) error {
	if follow, _ := next.Context().Value(redirectsKey{}).(bool); !follow {
		return http.ErrUseLastResponse
	}
	if len(via) > maxRedirects {
		return &blockedError{what: fmt.Sprintf("the call was redirected more than %d times", maxRedirects)}
	}
	first := via[0]
	switch {
	case next.URL.Scheme != "http" && next.URL.Scheme != "https":
		return &blockedError{what: fmt.Sprintf("a redirection leads to the scheme %q", next.URL.Scheme)}
	case via[len(via)-1].URL.Scheme == "https" && next.URL.Scheme == "http":
		return &blockedError{what: fmt.Sprintf("a redirection leads from https to http at %q", next.URL.Host)}
	}
	if next.URL.Scheme != first.URL.Scheme || next.URL.Host != first.URL.Host {
		keepForeign(next.Header)
	}
	return nil
}

// keepForeign drops everything that another origin than the one named by the workflow has no business to see.
func keepForeign(h http.Header) {
	for name := range h {
		switch name {
		case "Accept", "Content-Type", "User-Agent":
		default:
			h.Del(name)
		}
	}
}
