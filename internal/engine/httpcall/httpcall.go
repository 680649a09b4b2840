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
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
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
	// Repeated returns whether the workflow task that an execution has now was given out before, so that its calls may have been
	// sent; nil: never.
	Repeated func(runID string) bool
	// Writable returns an error while the database that keeps large answers is away; nil: it never is. Calls wait with a large answer
	// until it is there, as an answer that cannot be kept is lost.
	Writable func(ctx context.Context) error
}

// Caller performs HTTP calls. It is safe for concurrent use.
type Caller struct {
	client    *http.Client
	transport *http.Transport
	// once sends each request over a connection of its own: on one that it reuses the transport may send a request twice.
	once      *http.Client
	userAgent string
	secrets   secret.Provider
	tokens    *authn.Tokens
	exchanges *exchanges
	repeated  func(runID string) bool
	storage   storage
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
	}
	if c.repeated == nil {
		c.repeated = func(string) bool { return false }
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
	if r.Local && r.Patience > 0 {
		return c.callLocally(ctx, r)
	}
	if !r.Local {
		stop := heartbeat(ctx)
		defer stop()
	}
	res, err := c.perform(ctx, r)
	if !r.ReportAttempts {
		return res, err
	}
	return c.storage.await(ctx, res, err)
}

// perform makes the call and ends with it.
func (c *Caller) perform(ctx context.Context, r flow.HTTPRequest) (flow.HTTPResponse, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, r.Timeout, errTimeLimit)
	defer cancel()

	sent := &attempts{}
	sealed, err := c.resolve(bounded, r)
	if err != nil {
		return flow.HTTPResponse{}, outward(unresolved(ctx, r, err), nil, sent.all(r))
	}
	res, body, err := c.exchange(ctx, bounded, r, sealed, sent) //nolint:bodyclose // it was read and closed
	scrubber := scrub.New(sealed.credentials()...)
	switch {
	case err != nil && r.ReportAttempts && errors.Is(ctx.Err(), context.Canceled):
		return flow.HTTPResponse{}, flow.Interrupted(err.Error())
	case err != nil:
		return flow.HTTPResponse{}, outward(err, scrubber, sent.all(r))
	case !acceptable(res.StatusCode, r.Redirect):
		return flow.HTTPResponse{}, outward(answered(r, res, scrubber.Bytes(body)), scrubber, sent.all(r))
	}
	out, err := respond(r, res, body, scrubber)
	out.Attempts = sent.all(r)
	return out, outward(err, scrubber, out.Attempts)
}

// exchange sends the request, twice where the first answer is a challenge, and reads the answer.
func (c *Caller) exchange(
	ctx, bounded context.Context, r flow.HTTPRequest, s *sealed, sent *attempts,
) (*http.Response, []byte, error) {
	travel := withRedirects(bounded, redirects{follow: r.Redirect, secret: len(s.values) > 0, sent: sent})
	travel = httptrace.WithClientTrace(travel, sent.trace())
	req, err := c.build(travel, s.HTTPRequest)
	if err != nil {
		return nil, nil, invalidRequest(r, err)
	}
	if s.method != nil {
		if err := s.method.Authorize(bounded, req); err != nil {
			return nil, nil, unauthenticated(ctx, bounded, r, err)
		}
	}
	res, body, err := c.send(req, r, sent)
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
	if res, body, err = c.send(req, r, sent); err != nil {
		return nil, nil, transportFailure(ctx, bounded, r, err)
	}
	return res, body, nil
}

// send sends a request and reads the answer up to its limit.
func (c *Caller) send(req *http.Request, r flow.HTTPRequest, sent *attempts) (*http.Response, []byte, error) {
	client := c.client
	if r.Once {
		client = c.once
	}
	res, err := client.Do(req)
	if err != nil {
		sent.end(0)
		return nil, nil, err
	}
	defer func() { _ = res.Body.Close() }() // all that was wanted has been read
	body, err := readBody(res.Body, r.MaxResponseBytes)
	if err != nil && !errors.Is(err, errTooLarge) {
		sent.end(0)
	} else {
		sent.end(res.StatusCode)
	}
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
	sent   *attempts
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
	policy.sent.follow()
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
