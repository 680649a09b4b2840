package permission

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
)

// Tokens authenticates tokens.
type Tokens interface {
	// Authenticate returns the actor of the token. grace is the maximum age of a cached result while the store is
	// unavailable.
	Authenticate(ctx context.Context, text string, grace time.Duration) (auth.Actor, error)
	// ID returns the ID of a token in the format of tokens, whether or not it exists; empty for other texts.
	ID(text string) string
}

// AuthOptions configure the authentication.
type AuthOptions struct {
	// Tokens is nil if every caller is the local administrator.
	Tokens Tokens
	// Sessions authenticates sessions of browsers; optional.
	Sessions Sessions
	// Rate and Burst bound the requests per second of one token; a rate of 0 means no bound.
	Rate  float64
	Burst int
	Now   func() time.Time
	// Public, if set, reports further requests that need no token, because what is returned contains no data.
	Public func(r *http.Request) bool
	// Refused, if set, is called with the reason (of package apperror) of each refusal.
	Refused func(ctx context.Context, reason string)
}

const (
	// failureRate and failureBurst bound the requests of one address without a valid token that are answered with what is
	// wrong. They need no bound over all addresses: package lookup reads unknown tokens together.
	failureRate  = 1
	failureBurst = 20
	// metricsGrace is how long a cached token may read metrics while the store is unavailable, when metrics are needed
	// most.
	metricsGrace = time.Hour

	metricsPath = "/metrics"
)

// AuthMiddleware authenticates every request of one listener and limits its rate before it reaches a method or a page.
//
//	handler = permission.NewAuthMiddleware(permission.AuthOptions{Tokens: tokens, Rate: 500, Burst: 1000, …}).Wrap(handler)
//
// With tokens, every request needs "Authorization: Bearer …", or the cookie of a session that was opened with a token:
// REST, gRPC, Connect, posted CloudEvents, reflection, metrics. Only health, the page that lists the paths, the OpenAPI
// document, the web UI without its data, and the method that signs in are open. Metrics require viewer on all projects;
// the table of permissions decides on everything else. Rates are limited per token, and per address for requests
// without a valid token. Without tokens, every caller is the local administrator: such a listener is open only to this
// machine.
//
// Every response has the headers that prevent browsers from content sniffing and framing.
type AuthMiddleware struct {
	opts     AuthOptions
	calls    *Limiter
	failures *Limiter
	origins  *http.CrossOriginProtection
	// reads are the paths of methods without side effects.
	reads map[string]bool
}

// RefusalReasons lists the reasons with which [AuthOptions.Refused] and [Denial] count refused requests. While the
// store is unavailable, requests are also refused with its reasons.
func RefusalReasons() []string {
	return []string{
		apperror.Unidentified, apperror.TokenExpired, apperror.TokenRevoked, apperror.SessionEnded, apperror.PermissionDenied,
		apperror.RateLimited, apperror.CSRFTokenWrong, apierror.CrossOrigin, apierror.TooManyBodies,
	}
}

// NewAuthMiddleware returns the middleware.
func NewAuthMiddleware(opts AuthOptions) *AuthMiddleware {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Refused == nil {
		opts.Refused = func(context.Context, string) {}
	}
	return &AuthMiddleware{
		opts:     opts,
		calls:    NewLimiter(LimiterOptions{Rate: opts.Rate, Burst: opts.Burst, Now: opts.Now}),
		failures: NewLimiter(LimiterOptions{Rate: failureRate, Burst: failureBurst, Now: opts.Now}),
		origins:  http.NewCrossOriginProtection(),
		reads:    reads(),
	}
}

// Wrap returns a handler that authenticates requests before it calls next.
func (m *AuthMiddleware) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header(), r.TLS != nil)
		if m.opts.Tokens == nil {
			authenticated(r.Context())
			next.ServeHTTP(w, r.WithContext(auth.WithActor(r.Context(), auth.Local())))
			return
		}
		if m.isOpen(r) {
			next.ServeHTTP(w, r)
			return
		}
		if isSignIn(r.URL.Path) {
			m.signIn(w, r, next)
			return
		}
		actor, err := m.authenticate(r)
		if err != nil {
			m.refuse(w, r, err)
			return
		}
		authenticated(r.Context())
		next.ServeHTTP(w, r.WithContext(auth.WithActor(r.Context(), actor)))
	})
}

// signIn passes on a sign-in, which has its credential in the message: a page of another origin must not sign a browser
// in either.
func (m *AuthMiddleware) signIn(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if err := m.crossOrigin(r); err != nil {
		m.refuse(w, r, err)
		return
	}
	next.ServeHTTP(w, r)
}

// secure sets the headers of every response. Pages that load resources override the policy.
func secure(h http.Header, encrypted bool) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	if encrypted {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// isOpen reports whether a request needs no token.
func (m *AuthMiddleware) isOpen(r *http.Request) bool {
	path := r.URL.Path
	return path == "/livez" || path == "/readyz" || path == "/" || path == "/openapi.yaml" ||
		strings.HasPrefix(path, "/grpc.health.v1.Health/") ||
		m.opts.Public != nil && m.opts.Public(r)
}

// authenticate returns the actor of a request.
func (m *AuthMiddleware) authenticate(r *http.Request) (auth.Actor, error) {
	actor, err := m.admit(r.Context(), r.RemoteAddr, m.credentialOf(r))
	if err == nil && r.URL.Path == metricsPath {
		err = auth.Require(auth.WithActor(r.Context(), actor), auth.Everywhere, auth.Viewer)
	}
	return actor, err
}

// admit returns the actor of a credential within the limits of its address and its token. A credential is checked
// before it is refused, so that no other caller can use up the limits of a valid one.
func (m *AuthMiddleware) admit(ctx context.Context, remote string, c credential) (actor auth.Actor, err error) {
	if err = c.missing; err == nil {
		actor, err = c.actor(ctx)
	}
	if err != nil {
		return auth.Actor{}, m.failed(remote, c, err)
	}
	if wait := m.calls.Take(actor.ID); wait > 0 {
		return auth.Actor{}, apperror.New(apperror.Exhausted, apperror.RateLimited,
			"token %q exceeds api.rate_limit; send fewer requests, or retry later", actor.Name).WithRetry(wait)
	}
	return actor, nil
}

// failed counts a credential that is not valid, and returns the error for its request. Only what is certain is counted:
// the address, or the ID of a token or session whose owner alone can get a reason such as its expiry.
func (m *AuthMiddleware) failed(remote string, c credential, err error) error {
	f, ok := apperror.From(err)
	if !ok || f.Class != apperror.Unauthenticated {
		return err
	}
	from := Network(remote)
	switch {
	case c.missing != nil:
		from += " without" // counted separately, so that wrong tokens are named as such beside requests without one
	case f.Reason != apperror.Unidentified:
		from = "owner of " + c.id
	}
	if wait := m.failures.Take(from); wait > 0 {
		return apperror.New(apperror.Exhausted, apperror.RateLimited,
			"too many requests without a valid token; wait a moment, and check the token").WithRetry(wait)
	}
	return err
}

// bearer returns the bearer token of a request.
func bearer(h http.Header) (string, error) {
	values := h.Values("Authorization")
	if len(values) == 0 || values[0] == "" {
		return "", apperror.New(apperror.Unauthenticated, apperror.Unidentified,
			"this server requires a token: send \"Authorization: Bearer …\"; the command line takes it from --token, "+
				"SIGNALBOX_TOKEN or its context")
	}
	scheme, text, _ := strings.Cut(values[0], " ")
	if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || text == "" {
		return "", apperror.New(apperror.Unauthenticated, apperror.Unidentified,
			"the Authorization header must be \"Bearer\" and one token")
	}
	return strings.TrimSpace(text), nil
}

// refuse sends the error of a request that is not admitted.
func (m *AuthMiddleware) refuse(w http.ResponseWriter, r *http.Request, err error) {
	m.report(r.Context(), r.URL.Path, r.RemoteAddr, err)
	e, _ := apierror.Error(err)
	if e.Code() == connect.CodeUnauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="signalbox"`)
	}
	apierror.Write(w, r, e)
}

// report counts and logs a refusal.
func (m *AuthMiddleware) report(ctx context.Context, path, from string, err error) {
	log := logger.FromContext(ctx).With("path", path, "from", from)
	if _, expected := apierror.Error(err); !expected {
		log.ErrorContext(ctx, "A caller could not be authenticated", "error", err)
	}
	if f, ok := apperror.From(err); ok {
		m.opts.Refused(ctx, f.Reason)
		if f.Reason != apperror.RateLimited {
			log.InfoContext(ctx, "A request was refused", "reason", f.Reason, "error", err)
		}
	}
}

// Network returns what requests of unknown callers are counted by, given the remote address of their connection: the
// address of a machine, or in IPv6 the network of one machine (/64). Headers in which a proxy names its client are
// ignored, because any client can set them.
func Network(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if address = address.Unmap(); address.Is4() {
		return address.String()
	}
	const network = 64
	prefix, err := address.WithZone("").Prefix(network)
	if err != nil {
		return host
	}
	return prefix.String()
}
