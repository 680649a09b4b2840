// Package gate is what every request passes before it reaches a method or a page: who calls, and how often.
//
//	handler = gate.New(gate.Options{Tokens: tokens, Rate: 500, Burst: 1000, …}).Wrap(handler)
//
// With tokens, a request names its caller by "Authorization: Bearer …", whatever it is for: REST, gRPC, Connect, posted CloudEvents,
// reflection, metrics. Open are health and the page that tells where things are. Metrics take a viewer of all projects; everything else
// is package permit's to decide. Each token has a rate; so has each address with what is no valid token, and so have all together with
// tokens that are not known. Without tokens, every caller is the local administrator: such a listener is open to this machine alone.
//
// Every answer carries the headers that keep browsers from guessing and framing.
package gate

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/rpc/fail"
	"github.com/signalbox-dev/signalbox/internal/rpc/limit"
)

// Tokens tells who has which.
type Tokens interface {
	// Authenticate returns who acts with the token of this text. grace is how old what is known of it may be when nobody can be asked.
	Authenticate(ctx context.Context, text string, grace time.Duration) (auth.Actor, error)
	// Recent tells whether it was valid a moment ago, without asking anybody.
	Recent(text string) bool
	// ID returns that of a token that is written as tokens are, whether or not there is one; empty for other texts.
	ID(text string) string
}

// Options say who is let through.
type Options struct {
	// Tokens is nil where every caller is the local administrator.
	Tokens Tokens
	// Rate and Burst bound the requests per second of one token; a rate of 0 does not.
	Rate  float64
	Burst int
	Now   func() time.Time
	// Refused is told why, by a reason of package fault; nil: nobody.
	Refused func(ctx context.Context, reason string)
}

const (
	// failureRate and failureBurst bound what one address may send that is no valid token: texts that cannot be one together, each
	// other one by its ID, so that whoever goes on with a token that is revoked keeps nobody out behind the same proxy.
	failureRate  = 1
	failureBurst = 20
	// guessRate and guessBurst bound how often the store is asked for tokens that there are not, whoever sends them.
	guessRate  = 100
	guessBurst = 1000
	// metricsGrace is how long metrics go on to be read with a known token while the store is away: then they are needed most.
	metricsGrace = time.Hour

	metricsPath = "/metrics"
)

// Gate is one listener's.
type Gate struct {
	opts     Options
	calls    *limit.Limiter
	failures *limit.Limiter
	guesses  *limit.Limiter
}

// everywhere is the one key of what is counted for all addresses together.
const everywhere = ""

// New returns a gate.
func New(opts Options) *Gate {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Refused == nil {
		opts.Refused = func(context.Context, string) {}
	}
	return &Gate{
		opts:     opts,
		calls:    limit.New(limit.Options{Rate: opts.Rate, Burst: opts.Burst, Now: opts.Now}),
		failures: limit.New(limit.Options{Rate: failureRate, Burst: failureBurst, Now: opts.Now}),
		guesses:  limit.New(limit.Options{Rate: guessRate, Burst: guessBurst, Now: opts.Now}),
	}
}

// Wrap returns a handler that asks before next does anything.
func (g *Gate) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header(), r.TLS != nil)
		if g.opts.Tokens == nil {
			next.ServeHTTP(w, r.WithContext(auth.WithActor(r.Context(), auth.Local())))
			return
		}
		if isOpen(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		actor, err := g.enter(r)
		if err != nil {
			g.refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(auth.WithActor(r.Context(), actor)))
	})
}

// secure sets what every answer has. Pages that need more than nothing from elsewhere set a policy of their own.
func secure(h http.Header, encrypted bool) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	if encrypted {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// isOpen tells what needs no token.
func isOpen(path string) bool {
	return path == "/livez" || path == "/readyz" || path == "/" || strings.HasPrefix(path, "/grpc.health.v1.Health/")
}

// enter returns who calls.
func (g *Gate) enter(r *http.Request) (auth.Actor, error) {
	from, id := origin(r.RemoteAddr), ""
	text, err := bearer(r.Header)
	if err != nil {
		from += " without" // whoever forgets the token keeps nobody out who has one, behind the same address
	} else if id = g.opts.Tokens.ID(text); id != "" {
		from += " " + id
	}
	if wait := g.patience(from, id); wait > 0 && (err != nil || !g.opts.Tokens.Recent(text)) {
		return auth.Actor{}, fault.New(fault.Exhausted, fault.RateLimited,
			"too many requests without a valid token came in; wait a moment, and check the token").WithRetry(wait)
	}
	var actor auth.Actor
	if err == nil {
		grace := time.Duration(0)
		if r.URL.Path == metricsPath {
			grace = metricsGrace
		}
		actor, err = g.opts.Tokens.Authenticate(r.Context(), text, grace)
	}
	if f, ok := fault.From(err); ok && f.Class == fault.Unauthenticated {
		g.failures.Take(from)
		if id != "" && f.Reason == fault.Unidentified {
			g.guesses.Take(everywhere)
		}
	}
	if err != nil {
		return auth.Actor{}, err
	}
	if wait := g.calls.Take(actor.ID); wait > 0 {
		return auth.Actor{}, fault.New(fault.Exhausted, fault.RateLimited,
			"token %q makes more requests than api.rate_limit allows; make fewer, or make them later", actor.Name).WithRetry(wait)
	}
	if r.URL.Path == metricsPath {
		err = auth.Require(auth.WithActor(r.Context(), actor), auth.Everywhere, auth.Viewer)
	}
	return actor, err
}

// patience returns how long nobody is asked about what comes from there, under the ID of a token where it has one.
func (g *Gate) patience(from, id string) time.Duration {
	wait := g.failures.Wait(from)
	if id != "" {
		wait = max(wait, g.guesses.Wait(everywhere))
	}
	return wait
}

// bearer returns the token that a request was sent with.
func bearer(h http.Header) (string, error) {
	values := h.Values("Authorization")
	if len(values) == 0 || values[0] == "" {
		return "", fault.New(fault.Unauthenticated, fault.Unidentified,
			"this server asks for a token: send \"Authorization: Bearer …\"; the command line takes it from --token, SIGNALBOX_TOKEN or its context")
	}
	scheme, text, _ := strings.Cut(values[0], " ")
	if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || text == "" {
		return "", fault.New(fault.Unauthenticated, fault.Unidentified, "the Authorization header is not of the form \"Bearer\" and one token")
	}
	return strings.TrimSpace(text), nil
}

// refuse answers a request that is not let through.
func (g *Gate) refuse(w http.ResponseWriter, r *http.Request, err error) {
	e, expected := fail.Error(err)
	log := logger.FromContext(r.Context()).With("path", r.URL.Path, "from", r.RemoteAddr)
	if !expected {
		log.ErrorContext(r.Context(), "A caller could not be told", "error", err)
	}
	if f, ok := fault.From(err); ok {
		g.opts.Refused(r.Context(), f.Reason)
		if f.Reason != fault.RateLimited {
			log.InfoContext(r.Context(), "A request was refused", "reason", f.Reason, "error", err)
		}
	}
	if e.Code() == connect.CodeUnauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="signalbox"`)
	}
	fail.Write(w, r, e)
}

// origin is the address that failures are counted for: that of a machine, or the network that one machine has in IPv6. What a proxy
// says of whom it speaks for is not believed, since anybody can say it.
func origin(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	address, err := netip.ParseAddr(host)
	if err != nil || address.Is4() || address.Is4In6() {
		return host
	}
	const network = 64
	prefix, err := address.WithZone("").Prefix(network)
	if err != nil {
		return host
	}
	return prefix.String()
}
