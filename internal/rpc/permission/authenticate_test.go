package permission_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/rpc/permission"
)

// tokens has one valid token, "good".
type tokens struct {
	asked int
	grace time.Duration
}

func (k *tokens) Authenticate(_ context.Context, text string, grace time.Duration) (auth.Actor, error) {
	k.asked++
	k.grace = grace
	if text == "good" {
		return auth.Actor{Kind: auth.KindToken, Name: "ada", ID: "1",
			Roles: map[string]auth.Role{auth.Everywhere: auth.Viewer}}, nil
	}
	if text == "token revoked" {
		return auth.Actor{}, apperror.New(apperror.Unauthenticated, apperror.TokenRevoked, "revoked")
	}
	return auth.Actor{}, apperror.New(apperror.Unauthenticated, apperror.Unidentified, "unknown token")
}

// ID treats "good" and "token …" as well-formed tokens.
func (k *tokens) ID(text string) string {
	if text == "good" {
		return "1"
	}
	id, _ := strings.CutPrefix(text, "token ")
	if id == text {
		return ""
	}
	return id
}

// echo responds with the name of the caller.
func echo(w http.ResponseWriter, r *http.Request) {
	a, _ := auth.ActorFrom(r.Context())
	_, _ = w.Write([]byte(a.Name))
}

func ask(h http.Handler, path, from string, authorization ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.RemoteAddr = from
	r.Header["Authorization"] = authorization
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestWithoutTokensEveryCallerIsLocalAdministrator(t *testing.T) {
	t.Parallel()
	h := permission.NewAuthMiddleware(permission.AuthOptions{Rate: 0.001, Burst: 1}).Wrap(http.HandlerFunc(echo))
	for range 10 {
		w := ask(h, "/v1/x", "127.0.0.1:1", "Bearer whatever")
		require.Equal(t, "local", w.Body.String())
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		require.Empty(t, w.Header().Get("Strict-Transport-Security"), "there is no TLS")
	}
}

func TestAuthorizationHeaderForms(t *testing.T) {
	t.Parallel()
	known := &tokens{}
	h := permission.NewAuthMiddleware(permission.AuthOptions{Tokens: known}).Wrap(http.HandlerFunc(echo))
	for _, right := range []string{"Bearer good", "bearer good", "BEARER  good "} {
		require.Equal(t, "ada", ask(h, "/v1/x", "10.0.0.1:1", right).Body.String(), right)
	}
	for _, wrong := range [][]string{
		nil, {""}, {"good"}, {"Basic good"}, {"Bearer"}, {"Bearer "}, {"Bearer bad"}, {"Bearer good", "Bearer good"}} {
		require.Equal(t, http.StatusUnauthorized, ask(h, "/v1/x", "10.0.0.1:1", wrong...).Code, wrong)
	}
	ask(h, "/metrics", "10.0.0.1:1", "Bearer good")
	require.Positive(t, known.grace, "metrics are read while the store is unavailable")
	ask(h, "/v1/metrics", "10.0.0.1:1", "Bearer good")
	require.Zero(t, known.grace)
}

func TestGuessingIsRateLimited(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	known := &tokens{}
	h := permission.NewAuthMiddleware(permission.AuthOptions{Tokens: known, Now: func() time.Time {
		return now
	}}).Wrap(http.HandlerFunc(echo))
	const from, neighbour, elsewhere = "[2001:db8::1]:1", "[2001:db8::2]:9", "[2001:db8:1::1]:1"
	codes := func(address string) (codes []int) {
		for range 25 {
			codes = append(codes, ask(h, "/v1/x", address, "Bearer bad").Code)
		}
		return codes
	}
	got := codes(from)
	require.Equal(t, http.StatusUnauthorized, got[0])
	require.Equal(t, http.StatusTooManyRequests, got[24])
	w := ask(h, "/v1/x", neighbour, "Bearer bad")
	require.Equal(t, http.StatusTooManyRequests, w.Code, "a machine has a whole network")
	require.NotEmpty(t, w.Header().Get("Retry-After"))
	require.Equal(t, http.StatusUnauthorized, ask(h, "/v1/x", elsewhere, "Bearer bad").Code)
	require.Equal(t, http.StatusUnauthorized, ask(h, "/v1/x", from).Code,
		"requests without a token are counted separately")
	require.Equal(t, http.StatusTooManyRequests, ask(h, "/v1/x", from, "Bearer worse").Code)
	require.Equal(t, http.StatusTooManyRequests, ask(h, "/v1/x", from, "Bearer token a").Code,
		"an ID that every caller can make up has no count of its own")
	require.Equal(t, http.StatusUnauthorized, ask(h, "/v1/x", from, "Bearer token revoked").Code,
		"that of a token that exists has")
	require.Equal(t, http.StatusOK, ask(h, "/v1/x", from, "Bearer good").Code,
		"a valid token is accepted, also when it is used for the first time")
	now = now.Add(time.Second)
	require.Equal(t, http.StatusUnauthorized, ask(h, "/v1/x", from, "Bearer worse").Code)
}

func TestRevokedTokenIsRateLimited(t *testing.T) {
	t.Parallel()
	h := permission.NewAuthMiddleware(permission.AuthOptions{Tokens: &tokens{}}).Wrap(http.HandlerFunc(echo))
	var last int
	for i := range 25 {
		last = ask(h, "/v1/x", fmt.Sprintf("10.0.0.%d:1", i), "Bearer token revoked").Code
	}
	require.Equal(t, http.StatusTooManyRequests, last, "from all addresses together")
	require.Equal(t, http.StatusUnauthorized, ask(h, "/v1/x", "10.0.0.1:1", "Bearer bad").Code)
}

// TestGuessesDoNotLockOutCallers sends one made-up token after another, from one address and from many.
func TestGuessesDoNotLockOutCallers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h := permission.NewAuthMiddleware(permission.AuthOptions{Tokens: &tokens{}, Now: func() time.Time {
		return now
	}}).Wrap(http.HandlerFunc(echo))
	for i := range 3000 {
		ask(h, "/v1/x", "10.0.0.1:1", fmt.Sprintf("Bearer token %d", i))
		ask(h, "/v1/x", fmt.Sprintf("10.0.%d.%d:1", i/250, i%250), fmt.Sprintf("Bearer token %d", i))
	}
	for _, from := range []string{"10.0.0.1:1", "10.0.1.1:1", "10.1.0.1:1"} {
		require.Equal(t, http.StatusOK, ask(h, "/v1/x", from, "Bearer good").Code, from)
	}
}

func TestNetworkOfACaller(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"10.0.0.1:80": "10.0.0.1", "[::ffff:10.0.0.1]:80": "10.0.0.1", "[2001:db8::1]:80": "2001:db8::/64",
		"[2001:db8::ffff:1]:9": "2001:db8::/64",
		"[2001:db8:0:1::1]:80": "2001:db8:0:1::/64", "[fe80::1%eth0]:80": "fe80::/64", "pipe": "pipe", "host:80": "host",
	} {
		require.Equal(t, want, permission.Network(remote), remote)
	}
}
