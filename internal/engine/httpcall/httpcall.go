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
// # Secrets and authentication
//
// Secrets in a request are marks until it is sent; [Options.Secrets] gives what they stand for. Their values are taken out of
// everything that comes back (package scrub): content, headers, the request as it went out, the texts of failures. A redirection to another
// origin that would take the body of a request with secrets along is refused. Package authn has the schemes of authentication; its
// requests to authorities pass the same guard.
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
//	a secret that nobody has, or that lacks a member   configuration   400                  refused
//	a provider of secrets that fails                   configuration   503                  refused
//	no token from the authority                        authentication  401                  refused
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
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall/authn"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall/scrub"
	"github.com/signalbox-dev/signalbox/internal/secret"
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
	// Secrets gives the secrets that calls use; nil: there are none.
	Secrets secret.Provider
}

// Caller performs HTTP calls. It is safe for concurrent use.
type Caller struct {
	client    *http.Client
	transport *http.Transport
	userAgent string
	secrets   secret.Provider
	tokens    *authn.Tokens
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
	c := &Caller{
		client:    &http.Client{Transport: transport, CheckRedirect: checkRedirect},
		transport: transport,
		userAgent: o.UserAgent,
		secrets:   o.Secrets,
	}
	if c.secrets == nil {
		c.secrets = none{}
	}
	c.tokens = authn.NewTokens(c.client, time.Now)
	return c
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

	sealed, err := c.resolve(bounded, r)
	if err != nil {
		return flow.HTTPResponse{}, outward(unresolved(ctx, r, err), nil)
	}
	res, body, err := c.exchange(ctx, bounded, r, sealed) //nolint:bodyclose // it was read and closed
	scrubber := scrub.New(sealed.credentials()...)
	if err != nil {
		return flow.HTTPResponse{}, outward(err, scrubber)
	}
	if !acceptable(res.StatusCode, r.Redirect) {
		return flow.HTTPResponse{}, outward(answered(r, res, scrubber.Bytes(body)), scrubber)
	}
	out, err := respond(r, res, body, scrubber)
	return out, outward(err, scrubber)
}

// exchange sends the request, twice where the first answer is a challenge, and reads the answer.
func (c *Caller) exchange(ctx, bounded context.Context, r flow.HTTPRequest, s *sealed) (*http.Response, []byte, error) {
	travel := withRedirects(bounded, redirects{follow: r.Redirect, secret: len(s.values) > 0})
	req, err := c.build(travel, s.HTTPRequest)
	if err != nil {
		return nil, nil, invalidRequest(r, err)
	}
	if s.method != nil {
		if err := s.method.Authorize(bounded, req); err != nil {
			return nil, nil, unauthenticated(ctx, bounded, r, err)
		}
	}
	res, body, err := c.send(req, r.MaxResponseBytes)
	if err != nil {
		return nil, nil, transportFailure(ctx, bounded, r, err)
	}
	if s.method == nil {
		return res, body, nil
	}
	header, again := s.method.Answer(req, res)
	if !again {
		return res, body, nil
	}
	if req, err = c.build(travel, s.HTTPRequest); err != nil {
		return nil, nil, invalidRequest(r, err)
	}
	req.Header.Set("Authorization", header)
	if res, body, err = c.send(req, r.MaxResponseBytes); err != nil {
		return nil, nil, transportFailure(ctx, bounded, r, err)
	}
	return res, body, nil
}

// send sends a request and reads the answer up to limit bytes.
func (c *Caller) send(req *http.Request, limit int64) (*http.Response, []byte, error) {
	res, err := c.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = res.Body.Close() }() // all that was wanted has been read
	body, err := readBody(res.Body, limit)
	return res, body, err
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

// redirects says what to do with redirections of a request.
type redirects struct {
	follow bool
	secret bool // secrets are in the request
}

func withRedirects(ctx context.Context, r redirects) context.Context {
	return context.WithValue(ctx, redirectsKey{}, r)
}

// checkRedirect decides on following a redirection. The address it leads to is checked by the guard as ever.
func checkRedirect(next *http.Request, via []*http.Request) error {
	policy, _ := next.Context().Value(redirectsKey{}).(redirects)
	if !policy.follow {
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
		if policy.secret && next.Body != nil && next.Body != http.NoBody {
			return &blockedError{what: fmt.Sprintf("a redirection would take a request with secrets in it to %q", next.URL.Host)}
		}
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
