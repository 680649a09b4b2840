// Package httpcall performs the HTTP exchanges of `call: http`: it implements the activity [flow.HTTPActivity].
//
// Make one [Caller] per worker with [New], register [Caller.Call], and [Caller.Close] it when the worker has stopped.
// Connections are kept and shared between calls; cookies are not.
//
// # Permitted addresses
//
// Calls connect only to public addresses, and to the networks of [Options.AllowPrivate]. The check uses the address of
// each connection, after the name was resolved: a name that changes its address between check and use gains nothing,
// and every redirect is checked again. Proxies of the environment are not used: the guard could not check the addresses
// behind them, and the reach of a workflow must not depend on the shell that started its worker.
//
// # Redirects
//
// Without `redirect`, a status of 300 to 399 is an error and nothing is followed. With it, up to 10 redirects are
// followed. A redirect that cannot be followed (304, or no Location) is the result. A redirect to another origin than
// the workflow's carries no headers of the workflow except Accept and Content-Type, and https is never redirected to
// http.
//
// # Secrets and authentication
//
// Secrets in a request are marks until it is sent; [Options.Secrets] resolves them. Their values are redacted in
// everything that is returned (package redact): content, headers, the request as sent, the texts of failures. A
// redirect to another origin is rejected if it would carry the body of a request with secrets. Package authn implements
// the schemes of authentication; its requests to authorities pass the same guard.
//
// # Failures
//
// Every failed call is a [flow.CallError]. Temporal never retries it, because the language's `try` decides that:
//
//	what happened                                      type            status               category
//	the origin responded with an error status          communication   the response's       answered
//	response announced as JSON that is not valid       communication   502                  answered
//	name not resolved, connection refused              communication   503                  transport
//	TLS failed, connection cut, response not HTTP      communication   502                  transport
//	no complete response in time                       communication   504                  transport
//	redirected too often                               communication   502                  transport
//	response over the size limit                       communication   502                  too_large
//	address or redirect not allowed by the guard       authorization   403                  refused
//	URL, method or header that cannot be sent          configuration   400                  refused
//	a secret that does not exist, or lacks a member    configuration   400                  refused
//	a secret provider that fails                       configuration   503                  refused
//	no token from the authority                        authentication  401                  refused
//
// A status of 503 means that nothing was sent. With 502 and 504 it is unknown whether the origin acted. A call that
// ends because its activity was canceled returns the context's error instead.
package httpcall

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/httpmessage"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/heartbeat"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall/authn"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/netguard"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/secret"
)

const (
	maxRedirects           = 10
	maxResponseHeaderBytes = 64 << 10
	// Defaults for a request without its own bounds.
	defaultTimeout          = 30 * time.Second
	defaultMaxResponseBytes = 1 << 20
	// TCP keep-alive detects origins that vanish without closing. Idle connections are closed.
	idleConnTimeout     = 60 * time.Second
	keepAlive           = 15 * time.Second
	maxIdleConns        = 256
	maxIdleConnsPerHost = 32
)

// Options configure a [Caller].
type Options struct {
	// AllowPrivate lists networks that may be called although they are not public.
	AllowPrivate []netip.Prefix
	// Resolver resolves the names of hosts. nil: that of the system.
	Resolver *net.Resolver
	// UserAgent is sent unless a workflow sets its own.
	UserAgent string
	// Secrets provides the secrets of calls. nil: there are none.
	Secrets secret.Provider
	// Repeated reports whether an execution's current workflow task was dispatched before, so that its calls may have
	// been sent. nil: never.
	Repeated func(runID string) bool
	// Writable returns an error while the database that stores large responses is unavailable. nil: it always is
	// available. Calls hold back a large response during an outage, because a response that cannot be stored is lost.
	Writable func(ctx context.Context) error
	// Propagate sends the trace context of traced calls to the called services.
	Propagate bool
	// MaxRetryAfter is the longest delay of a retry that a service may ask for.
	MaxRetryAfter time.Duration
}

// Caller performs HTTP calls. It is safe for concurrent use.
type Caller struct {
	client    *http.Client
	transport *http.Transport
	// once sends each request over a new connection: on a reused one the transport may send a request twice.
	once      *http.Client
	userAgent string
	secrets   secret.Provider
	tokens    *authn.Tokens
	exchanges *exchanges
	repeated  func(runID string) bool
	storage   storage
	propagate bool
	// maxRetryAfter is that of the options.
	maxRetryAfter time.Duration
}

// New returns a caller. It starts nothing before its first call.
func New(o Options) *Caller {
	dialer := &net.Dialer{
		KeepAlive: keepAlive, Resolver: o.Resolver, ControlContext: netguard.New(o.AllowPrivate).Control,
	}
	transport := &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           maxIdleConns,
		MaxIdleConnsPerHost:    maxIdleConnsPerHost,
		IdleConnTimeout:        idleConnTimeout,
		MaxResponseHeaderBytes: maxResponseHeaderBytes,
	}
	fresh := transport.Clone()
	fresh.DisableKeepAlives = true
	c := &Caller{
		client:    &http.Client{Transport: transport, CheckRedirect: checkRedirect},
		transport: transport,
		once:      &http.Client{Transport: fresh, CheckRedirect: checkRedirect},
		userAgent: o.UserAgent,
		secrets:   o.Secrets,
		exchanges: newExchanges(contract.CallQueue(rand.Text())),
		repeated:  o.Repeated,
		storage:   storage{writable: o.Writable},
		propagate: o.Propagate,

		maxRetryAfter: o.MaxRetryAfter,
	}
	if c.repeated == nil {
		c.repeated = func(string) bool { return false }
	}
	if c.secrets == nil {
		c.secrets = noSecrets{}
	}
	c.tokens = authn.NewTokens(c.client)
	return c
}

// Close closes the idle connections. Calls in progress are not affected.
func (c *Caller) Close() { c.transport.CloseIdleConnections() }

// Call is the activity. The package documentation describes its errors.
func (c *Caller) Call(ctx context.Context, r flow.HTTPRequest) (flow.HTTPResponse, error) {
	if r.Timeout <= 0 {
		r.Timeout = defaultTimeout
	}
	if r.MaxResponseBytes <= 0 {
		r.MaxResponseBytes = defaultMaxResponseBytes
	}
	if r.Local && r.Patience > 0 {
		return c.callLocally(ctx, r)
	}
	if !r.Local {
		stop := heartbeat.Keep(ctx)
		defer stop()
	}
	res, err := c.perform(ctx, r)
	return c.storage.await(ctx, res, err)
}

// perform makes the call and returns its result.
func (c *Caller) perform(ctx context.Context, r flow.HTTPRequest) (flow.HTTPResponse, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, r.Timeout, errTimeLimit)
	defer cancel()

	sent := &attempts{}
	resolved, err := c.resolve(bounded, r)
	if err != nil {
		return flow.HTTPResponse{}, redacted(unresolved(ctx, r, err), nil, sent.all())
	}
	res, body, err := c.exchange(ctx, bounded, r, resolved, sent) //nolint:bodyclose // it was read and closed
	scrubber := redact.NewScrubber(resolved.credentials()...)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return flow.HTTPResponse{}, flow.Interrupted(err.Error())
	case err != nil:
		return flow.HTTPResponse{}, redacted(err, scrubber, sent.all())
	case !httpmessage.Acceptable(res.StatusCode, r.Redirect):
		return flow.HTTPResponse{}, redacted(statusError(r, res, scrubber.Bytes(body), scrubber), scrubber, sent.all())
	}
	out, err := respond(r, res, body, scrubber)
	out.Attempts = sent.all()
	return out, redacted(err, scrubber, out.Attempts)
}

// exchange sends the request, twice if the first response is a challenge or rejects a cached token, and reads the
// response.
func (c *Caller) exchange(
	ctx, bounded context.Context, r flow.HTTPRequest, s *resolvedRequest, sent *attempts,
) (*http.Response, []byte, error) {
	requestCtx := withRedirects(bounded, redirects{follow: r.Redirect, secret: len(s.values) > 0, sent: sent})
	requestCtx = httptrace.WithClientTrace(requestCtx, sent.trace())
	req, err := c.build(requestCtx, s)
	if err != nil {
		return nil, nil, invalidRequest(r, err)
	}
	if s.method != nil {
		if err := s.method.Authorize(bounded, req); err != nil {
			return nil, nil, unauthenticated(ctx, bounded, r, s.secretAuthority, err)
		}
	}
	res, body, err := c.send(req, r, s, sent) //nolint:contextcheck // the request has the context
	if err != nil {
		return nil, nil, transportFailure(ctx, bounded, r, s.secretOrigin, err)
	}
	if s.method == nil {
		return res, body, nil
	}
	header, again, err := s.method.Answer(bounded, req, res)
	if err != nil {
		return nil, nil, unauthenticated(ctx, bounded, r, s.secretAuthority, err)
	}
	if !again {
		return res, body, nil
	}
	if req, err = c.build(requestCtx, s); err != nil {
		return nil, nil, invalidRequest(r, err)
	}
	req.Header.Set("Authorization", header)
	if res, body, err = c.send(req, r, s, sent); err != nil { //nolint:contextcheck // see above
		return nil, nil, transportFailure(ctx, bounded, r, s.secretOrigin, err)
	}
	return res, body, nil
}

// send sends a request and reads the response up to its limit.
func (c *Caller) send(req *http.Request, r flow.HTTPRequest, s *resolvedRequest,
	sent *attempts) (*http.Response, []byte, error) {
	client := c.client
	if r.Once {
		client = c.once
	}
	req, span := c.trace(req, s)
	defer span.End()
	begun := time.Now()
	res, err := client.Do(req)
	if err != nil {
		sent.end(false, 0, 0)
		traced(span, 0)
		return nil, nil, err
	}
	defer func() { _ = res.Body.Close() }() // the body has been read
	body, err := readBody(res.Body, r.MaxResponseBytes)
	status := res.StatusCode
	if err != nil && !errors.Is(err, errTooLarge) {
		status = 0
	}
	sent.end(true, status, httpmessage.RetryAfter(res.StatusCode, res.Header, time.Now(), c.maxRetryAfter))
	traced(span, status)
	logger.FromContext(req.Context()).DebugContext(req.Context(), "Service answered a call",
		"method", spanMethod(req.Method), "status", res.StatusCode, "took", time.Since(begun))
	return res, body, err
}

type redirectsKey struct{}

// redirects configures the treatment of redirects of a request.
type redirects struct {
	follow bool
	secret bool // the request contains secrets
	sent   *attempts
}

func withRedirects(ctx context.Context, r redirects) context.Context {
	return context.WithValue(ctx, redirectsKey{}, r)
}

// checkRedirect decides whether a redirect is followed. The guard checks its address like any other.
func checkRedirect(next *http.Request, via []*http.Request) error {
	policy, _ := next.Context().Value(redirectsKey{}).(redirects)
	if !policy.follow {
		return http.ErrUseLastResponse
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("%w more than %d times", errRedirects, maxRedirects)
	}
	first := via[0]
	switch {
	case next.URL.Scheme != "http" && next.URL.Scheme != "https":
		return &netguard.BlockedError{What: fmt.Sprintf("a redirect leads to the scheme %q", next.URL.Scheme)}
	case via[len(via)-1].URL.Scheme == "https" && next.URL.Scheme == "http":
		return &netguard.BlockedError{What: fmt.Sprintf("a redirect leads from https to http at %q", next.URL.Host)}
	}
	if next.URL.Scheme != first.URL.Scheme || next.URL.Host != first.URL.Host {
		if policy.secret && next.Body != nil && next.Body != http.NoBody {
			return &netguard.BlockedError{
				What: fmt.Sprintf("a redirect would carry a request with secrets in it to %q", next.URL.Host)}
		}
		dropPrivateHeaders(next.Header)
	}
	policy.sent.follow()
	return nil
}

// dropPrivateHeaders removes every header that must not reach another origin than the one named by the workflow.
func dropPrivateHeaders(h http.Header) {
	for name := range h {
		switch name {
		case "Accept", "Content-Type", "User-Agent":
		default:
			h.Del(name)
		}
	}
}
