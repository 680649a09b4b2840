package permission

import (
	"context"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
)

// CSRFHeader has the CSRF token of a session.
const CSRFHeader = "X-Signalbox-CSRF"

// Sessions authenticates sessions of browsers.
//
// A browser sends the cookie by itself, also for a request that a page of another origin makes. Three measures keep
// such a page from acting for the user, each sufficient alone in a current browser: the cookie is SameSite=Strict; a
// request that the browser marks as coming from another origin is refused, reads included; and a request that changes
// something needs the session's CSRF token in a header, which a page of another origin can neither read nor send. CORS
// is never allowed.
type Sessions interface {
	// Authenticate returns the actor of the session with this secret.
	Authenticate(ctx context.Context, secret string) (auth.Actor, error)
	// ID returns the ID of a session in the format of secrets, whether or not it exists; empty for other texts.
	ID(secret string) string
	// CSRFToken returns the CSRF token of the session with this secret.
	CSRFToken(secret string) string
}

// SessionCookie returns the cookie of a session; without a secret, one that deletes it. Browsers accept the prefix
// __Host- only from this host and over TLS, so no other host of the domain can set the cookie.
func SessionCookie(secret string, encrypted bool) *http.Cookie {
	//nolint:gosec // without TLS a browser would not accept a Secure cookie
	c := &http.Cookie{Name: cookieName(encrypted), Value: secret, Path: "/", HttpOnly: true, Secure: encrypted,
		SameSite: http.SameSiteStrictMode}
	if secret == "" {
		c.MaxAge = -1
	}
	return c
}

func cookieName(encrypted bool) string {
	if encrypted {
		return "__Host-signalbox-session"
	}
	return "signalbox-session"
}

// SessionSecret returns the secret in the cookie of a request; empty if it has none. Several cookies of this name are
// an error: one of them may have been set by another host.
func SessionSecret(h http.Header, encrypted bool) (string, error) {
	cookies := (&http.Request{Header: h}).CookiesNamed(cookieName(encrypted))
	switch len(cookies) {
	case 0:
		return "", nil
	case 1:
		return cookies[0].Value, nil
	}
	return "", apperror.New(apperror.Unauthenticated, apperror.Unidentified,
		"the request has several cookies %q; delete the cookies of this site, and sign in again", cookieName(encrypted))
}

// crossOrigin returns an error if a browser marks the request as made by a page of another origin. Unlike
// http.CrossOriginProtection, it also refuses reads.
func (m *AuthMiddleware) crossOrigin(r *http.Request) error {
	change := &http.Request{Method: http.MethodPost, URL: r.URL, Host: r.Host, Header: r.Header}
	if m.origins.Check(change) == nil {
		return nil
	}
	return apperror.New(apperror.Denied, apierror.CrossOrigin,
		"a page of another origin (%q) may not sign in here or use a session of this server", r.Header.Get("Origin"))
}

// forged returns an error if the request may change something and lacks the CSRF token of its session.
func (m *AuthMiddleware) forged(r *http.Request, secret string) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || m.reads[r.URL.Path] {
		return nil
	}
	given := r.Header.Get(CSRFHeader) //nolint:canonicalheader // Get makes it canonical
	if subtle.ConstantTimeCompare([]byte(given), []byte(m.opts.Sessions.CSRFToken(secret))) == 1 {
		return nil
	}
	why := "is not the one of this session"
	if given == "" {
		why = "is missing"
	}
	return apperror.New(apperror.Denied, apperror.CSRFTokenWrong,
		"the header %s %s: send the csrf_token that GetSession returns", CSRFHeader, why)
}

// reads returns the paths of the methods that the protos mark as free of side effects. They may be called by POST
// without a CSRF token, above all GetSession, which returns it.
func reads() map[string]bool {
	found := map[string]bool{}
	for _, r := range Table() {
		name := protoreflect.FullName(strings.ReplaceAll(r.Procedure[1:], "/", "."))
		descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
		if err != nil {
			continue // a test compares the table with the protos
		}
		options, _ := descriptor.Options().(*descriptorpb.MethodOptions)
		found[r.Procedure] = options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
	}
	return found
}

// isSignIn reports whether a path is that of the method SignIn, which has its credential in the message.
func isSignIn(path string) bool {
	return path == signalboxv1connect.SessionServiceSignInProcedure || path == "/v1/session:sign-in"
}

// Verify returns the actor of a token that a client at this address sent in a message instead of a header. Wrong tokens
// count against the same limits.
func (m *AuthMiddleware) Verify(ctx context.Context, remote, text string) (auth.Actor, error) {
	if m.opts.Tokens == nil {
		return auth.Actor{}, apperror.New(apperror.Refused, apperror.SignInNotNeeded,
			"this server needs no sign-in: auth.mode is none, and every caller of this machine is an administrator")
	}
	actor, err := m.admit(ctx, remote, m.token(text, 0))
	if err != nil {
		m.report(ctx, signalboxv1connect.SessionServiceSignInProcedure, remote, err)
	}
	return actor, err
}

// credential is what a request authenticates with.
type credential struct {
	// id is the ID in its text, whether or not it exists; empty if the text has another format.
	id string
	// missing is the reason why the request has none.
	missing error
	actor   func(ctx context.Context) (auth.Actor, error)
}

func (m *AuthMiddleware) token(text string, grace time.Duration) credential {
	return credential{
		id:    m.opts.Tokens.ID(text),
		actor: func(ctx context.Context) (auth.Actor, error) { return m.opts.Tokens.Authenticate(ctx, text, grace) },
	}
}

func (m *AuthMiddleware) session(r *http.Request, secret string) credential {
	return credential{
		id: m.opts.Sessions.ID(secret),
		actor: func(ctx context.Context) (auth.Actor, error) {
			if err := m.crossOrigin(r); err != nil {
				return auth.Actor{}, err
			}
			actor, err := m.opts.Sessions.Authenticate(ctx, secret)
			if err != nil {
				return auth.Actor{}, err
			}
			return actor, m.forged(r, secret)
		},
	}
}

// credentialOf returns the credential of a request: its Authorization header, or else the cookie of its session.
func (m *AuthMiddleware) credentialOf(r *http.Request) credential {
	if m.opts.Sessions != nil && len(r.Header.Values("Authorization")) == 0 {
		if secret, err := SessionSecret(r.Header, r.TLS != nil); err != nil {
			return credential{missing: err}
		} else if secret != "" {
			return m.session(r, secret)
		}
	}
	text, err := bearer(r.Header)
	if err != nil {
		return credential{missing: err}
	}
	grace := time.Duration(0)
	if r.URL.Path == metricsPath {
		grace = metricsGrace
	}
	return m.token(text, grace)
}
