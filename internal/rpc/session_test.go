package rpc_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/session"
	"github.com/signalbox-dev/signalbox/internal/token"
)

// browserSession is what a page has after a sign-in.
type browserSession struct {
	id, cookie, csrf string
	current          map[string]any
}

// reads returns the headers of a request that changes nothing, changes also the CSRF token.
func (b browserSession) reads() []string { return []string{"Cookie", b.cookie} }

func (b browserSession) changes() []string {
	return []string{"Cookie", b.cookie, "X-Signalbox-CSRF", b.csrf}
}

// signIn opens a session with a token, as a header has it.
func (g *guarded) signIn(header []string, more ...string) browserSession {
	g.t.Helper()
	a := g.do("POST", "/v1/session:sign-in", `{"token":`+quoted(strings.TrimPrefix(header[1], "Bearer "))+`}`, more...)
	current := a.ok()["current"].(map[string]any)
	cookies := (&http.Response{Header: a.header}).Cookies()
	require.Len(g.t, cookies, 1)
	return browserSession{
		id: current["session"].(map[string]any)["id"].(string), cookie: cookies[0].Name + "=" +
			cookies[0].Value, csrf: current["csrfToken"].(string), current: current,
	}
}

func TestSignInOpensASessionWithTheRolesOfItsToken(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	id, operator := g.token(map[string]auth.Role{"shop": auth.Operator})
	g.do("GET", "/v1/session", "").fails(401, apperror.Unidentified)
	direct := g.do("GET", "/v1/session", "", operator...).ok()["current"].(map[string]any)
	require.Equal(t, "token", direct["authentication"])
	require.NotContains(t, direct, "csrfToken")
	require.NotContains(t, direct, "session")

	one := g.signIn(operator)
	found := g.do("GET", "/v1/session", "", one.reads()...).ok()["current"].(map[string]any)
	require.Equal(t, "session", found["authentication"])
	require.Equal(t, map[string]any{"shop": "operator"}, found["roles"])
	require.Equal(t, "token", found["actorKind"])
	require.Equal(t, "1.2.3", found["serverVersion"])
	require.Equal(t, one.csrf, found["csrfToken"])
	require.Equal(t, id, found["session"].(map[string]any)["tokenId"])
	require.Equal(t, one.current, found)
	g.do("GET", "/v1/projects/shop/runs", "", one.reads()...).ok()
	g.do("POST", "/v1/projects/shop/runs", `{"workflow":"x"}`, one.changes()...).fails(404, apperror.WorkflowNotFound)
	g.do("GET", "/v1/projects/lab/runs", "", one.reads()...).fails(404, apperror.ProjectNotFound)
	g.do("GET", "/v1/system/status", "", one.reads()...).fails(403, apperror.PermissionDenied)
	g.do("GET", "/metrics", "", one.reads()...).connectFails(403, "permission_denied", apperror.PermissionDenied)
	require.NotContains(t, g.log.String(), one.cookie[strings.Index(one.cookie, "=")+1:])
	require.NotContains(t, g.log.String(), strings.TrimPrefix(operator[1], "Bearer "))
}

func TestSessionCookieIsForThisServerOnly(t *testing.T) {
	t.Parallel()
	plain := startGuarded(t, nil)
	_, viewer := plain.token(map[string]auth.Role{"shop": auth.Viewer})
	body := `{"token":` + quoted(strings.TrimPrefix(viewer[1], "Bearer ")) + `}`
	a := plain.do("POST", "/v1/session:sign-in", body)
	require.Regexp(t, `^signalbox-session=[^;]{50,}; Path=/; HttpOnly; SameSite=Strict$`,
		strings.Join(a.header.Values("Set-Cookie"), "|"))
	require.Equal(t, "no-store", a.header.Get("Cache-Control"))
	require.Empty(t, a.header.Get("Access-Control-Allow-Origin"))
	a = plain.do("POST", "/signalbox.v1.SessionService/SignIn", body)
	require.Regexp(t, `^signalbox-session=[^;]{50,}; Path=/; HttpOnly; SameSite=Strict$`,
		strings.Join(a.header.Values("Set-Cookie"), "|"))

	serverTLS, clientTLS := selfSigned(t)
	over := startGuarded(t, func(o *rpc.Options) { o.TLS = serverTLS })
	over.base = strings.Replace(over.base, "http://", "https://", 1)
	over.client.Transport.(*http.Transport).TLSClientConfig = clientTLS
	_, viewer = over.token(map[string]auth.Role{"shop": auth.Viewer})
	body = `{"token":` + quoted(strings.TrimPrefix(viewer[1], "Bearer ")) + `}`
	a = over.do("POST", "/v1/session:sign-in", body)
	require.Regexp(t, `^__Host-signalbox-session=[^;]{50,}; Path=/; HttpOnly; Secure; SameSite=Strict$`,
		strings.Join(a.header.Values("Set-Cookie"), "|"))
	require.Equal(t, "max-age=31536000", a.header.Get("Strict-Transport-Security"))
	one := over.signIn(viewer)
	over.do("GET", "/v1/session", "", one.reads()...).ok()
	over.do("GET", "/v1/session", "", "Cookie", strings.TrimPrefix(one.cookie, "__Host-")).fails(401,
		apperror.Unidentified)
}

func TestSignInRefusesWrongTokensWithTheirReason(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	id, revoked := g.token(map[string]auth.Role{"shop": auth.Viewer})
	_, err := g.tokens.Revoke(auth.WithActor(t.Context(), auth.Local()), id, "")
	require.NoError(t, err)
	made, expired, err := g.tokens.Create(auth.WithActor(t.Context(), auth.Local()), token.Request{
		Name: "short", Roles: map[string]auth.Role{"shop": auth.Viewer}, ExpiresAt: time.Now().Add(200 * time.Millisecond),
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return time.Now().After(made.ExpiresAt) }, 10*time.Second, 10*time.Millisecond)
	for text, want := range map[string][2]string{
		strings.TrimPrefix(revoked[1], "Bearer "): {apperror.TokenRevoked, "was revoked"},
		expired: {apperror.TokenExpired, "expired at"},
		"":      {apperror.Unidentified, "tokens begin with"}, "sbx_no": {apperror.Unidentified, "tokens begin with"},
		revoked[1]: {apperror.Unidentified, "tokens begin with"},
	} {
		a := g.do("POST", "/v1/session:sign-in", `{"token":`+quoted(text)+`}`)
		require.Contains(t, a.fails(401, want[0]), want[1])
		require.Empty(t, a.header.Values("Set-Cookie"))
	}
	g.do("POST", "/v1/session:sign-in", `{"tokn":"x"}`).fails(400, apperror.InvalidArgument)
	g.do("GET", "/v1/session:sign-in", "").fails(405, "UNIMPLEMENTED")
}

func TestSignInIsRateLimited(t *testing.T) {
	t.Parallel()
	refused := make(chan string, 1000)
	g := startGuarded(t, func(o *rpc.Options) {
		o.Access.Refused = func(_ context.Context, reason string) { refused <- reason }
	})
	var last answer
	for range 30 {
		last = g.do("POST", "/v1/session:sign-in", `{"token":"wrong"}`)
	}
	require.Contains(t, last.fails(429, apperror.RateLimited), "too many requests")
	require.NotEmpty(t, last.header.Get("Retry-After"))
	require.Equal(t, apperror.Unidentified, <-refused)
	_, viewer := g.token(map[string]auth.Role{"shop": auth.Viewer})
	g.signIn(viewer)
}

func TestChangesInASessionNeedItsCSRFToken(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	_, admin := g.token(map[string]auth.Role{auth.Everywhere: auth.Admin})
	one, other := g.signIn(admin), g.signIn(admin)
	const body = `{"name":"forged"}`
	require.Contains(t, g.do("POST", "/v1/projects", body, one.reads()...).fails(403, apperror.CSRFTokenWrong),
		"is missing")
	for _, wrong := range []string{other.csrf, one.csrf[1:], one.csrf + "A", strings.ToLower(one.csrf) + "x", "null"} {
		headers := append(one.reads(), "X-Signalbox-CSRF", wrong)
		require.Contains(t, g.do("POST", "/v1/projects", body, headers...).fails(403, apperror.CSRFTokenWrong),
			"is not the one")
		g.do("POST", "/signalbox.v1.ProjectService/CreateProject", body, headers...).connectFails(403, "permission_denied",
			apperror.CSRFTokenWrong)
	}
	// A form of another page can send these types without asking.
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
		a := g.do("POST", "/v1/projects", body, append(one.reads(), "Content-Type", kind)...)
		require.Equal(t, http.StatusForbidden, a.status, kind)
	}
	for _, r := range [][]string{
		{"POST", "/v1/session:sign-out", `{}`}, {"POST", "/v1/sessions/" + one.id + ":revoke", `{}`},
		{"POST", "/v1/tokens", `{}`}, {"POST", "/v1/projects/shop/events", `{}`},
		{"PUT", "/v1/projects", `{}`}, {"DELETE", "/v1/projects", ""}, {"POST", "/signalbox.v1.RunService/CancelRun", `{}`},
	} {
		a := g.do(r[0], r[1], r[2], one.reads()...)
		require.Equal(t, http.StatusForbidden, a.status, r)
		require.Contains(t, a.body, apperror.CSRFTokenWrong, r)
	}
	require.Len(t, g.do("GET", "/v1/projects", "", one.reads()...).ok()["projects"], 3, "nothing was created")
	g.do("POST", "/signalbox.v1.SessionService/GetSession", `{}`, one.reads()...).ok()
	g.do("POST", "/signalbox.v1.RunService/ListRuns", `{"project":"shop"}`, one.reads()...).ok()
	g.do("POST", "/v1/projects", `{"name":"wanted"}`, one.changes()...).ok()
}

func TestOtherOriginsCannotUseASession(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, withUI(t))
	_, admin := g.token(map[string]auth.Role{auth.Everywhere: auth.Admin})
	one := g.signIn(admin)
	foreign := [][]string{{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"}, {"Origin", "http://127.0.0.1:1"}}
	for _, marks := range foreign {
		g.do("GET", "/v1/projects", "", append(one.reads(), marks...)...).fails(403, "CROSS_ORIGIN")
		g.do("POST", "/signalbox.v1.ProjectService/CreateProject", `{"name":"forged"}`,
			append(one.changes(), marks...)...).connectFails(403, "permission_denied", "CROSS_ORIGIN")
		a := g.do("POST", "/v1/session:sign-in", `{"token":`+quoted(strings.TrimPrefix(admin[1], "Bearer "))+`}`, marks...)
		require.Equal(t, http.StatusForbidden, a.status, marks)
		require.Empty(t, a.header.Values("Set-Cookie"), "no page signs a browser in as somebody else")
	}
	preflight := g.do("OPTIONS", "/v1/projects", "", "Origin", "https://evil.example", "Access-Control-Request-Method",
		"POST", "Access-Control-Request-Headers", "x-signalbox-csrf")
	require.Empty(t, preflight.header.Get("Access-Control-Allow-Origin"))
	require.Empty(t, preflight.header.Get("Access-Control-Allow-Headers"))
	for _, own := range [][]string{{"Origin", g.base}, {"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"}} {
		g.do("GET", "/v1/projects", "", append(one.reads(), own...)...).ok()
	}
	// a token is not sent by the browser itself
	g.do("GET", "/v1/projects", "", append(admin, "Origin", "https://evil.example")...).ok()
}

func TestSignInNeverKeepsAnID(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	_, ada := g.token(map[string]auth.Role{"shop": auth.Viewer})
	_, eve := g.token(map[string]auth.Role{"lab": auth.Viewer})
	planted := g.signIn(eve)
	mine := g.signIn(ada, planted.reads()...)
	require.NotEqual(t, planted.id, mine.id)
	require.NotEqual(t, planted.cookie, mine.cookie)
	require.NotEqual(t, planted.csrf, mine.csrf)
	require.Contains(t, g.do("GET", "/v1/session", "", planted.reads()...).fails(401, apperror.SessionEnded),
		"sign in again")
	made := g.signIn(ada, "Cookie", "signalbox-session=chosen-by-eve")
	require.NotContains(t, made.cookie, "chosen")
	both := g.do("GET", "/v1/session", "", "Cookie", mine.cookie+"; "+made.cookie)
	require.Contains(t, both.fails(401, apperror.Unidentified), "several cookies")
}

func TestAuthorizationHeaderWinsOverTheCookie(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	_, viewer := g.token(map[string]auth.Role{"shop": auth.Viewer})
	_, admin := g.token(map[string]auth.Role{auth.Everywhere: auth.Admin})
	one := g.signIn(viewer)
	found := g.do("GET", "/v1/session", "", append(one.reads(), admin...)...).ok()["current"].(map[string]any)
	require.Equal(t, "token", found["authentication"])
	require.Equal(t, map[string]any{"*": "admin"}, found["roles"])
	g.do("POST", "/v1/projects", `{"name":"more"}`, append(one.reads(), admin...)...).ok()
	g.do("GET", "/v1/session", "", append(one.reads(), "Authorization", "Bearer wrong")...).fails(401,
		apperror.Unidentified)
	g.do("POST", "/v1/session:sign-out", `{}`, admin...).fails(400, apperror.NoSession)
}

func TestSignOutEndsTheSessionAndItsCookie(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	_, admin := g.token(map[string]auth.Role{auth.Everywhere: auth.Admin})
	one := g.signIn(admin)
	a := g.do("POST", "/v1/session:sign-out", `{}`, one.changes()...)
	require.Equal(t, http.StatusOK, a.status)
	require.Equal(t, "signalbox-session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict", a.header.Get("Set-Cookie"))
	g.do("GET", "/v1/session", "", one.reads()...).fails(401, apperror.SessionEnded)
	g.do("GET", "/v1/projects", "", admin...).ok()

	two := g.signIn(admin)
	list := g.do("GET", "/v1/sessions", "", admin...).ok()["sessions"].([]any)
	require.Len(t, list, 1)
	require.Equal(t, two.id, list[0].(map[string]any)["id"])
	ended := g.do("POST", "/v1/sessions/"+two.id+":revoke", `{"reason":"left"}`, admin...).ok()["session"].(map[string]any)
	require.NotEmpty(t, ended["endTime"])
	g.do("GET", "/v1/session", "", two.reads()...).fails(401, apperror.SessionEnded)
	g.do("POST", "/v1/sessions/none:revoke", `{}`, admin...).fails(404, apperror.SessionNotFound)
	log := g.do("GET", "/v1/projects/-/audit?action=session.revoke", "", admin...).ok()["entries"].([]any)
	require.Len(t, log, 1)
	require.Equal(t, "left", log[0].(map[string]any)["reason"])
}

func TestWatchEndsWithItsSession(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	_, admin := g.token(map[string]auth.Role{auth.Everywhere: auth.Admin})
	g.do("POST", "/v1/projects/shop/workflows:publish", `{"source":`+quoted(greeting)+`}`, admin...).ok()
	id := g.do("POST", "/v1/projects/shop/runs", `{"workflow":"hello","input":{}}`,
		admin...).ok()["run"].(map[string]any)["id"].(string)
	_, viewer := g.token(map[string]auth.Role{"shop": auth.Viewer})
	one := g.signIn(viewer)
	req := connect.NewRequest(&signalboxv1.WatchRunRequest{Project: "shop", Id: id})
	for i := 0; i < len(one.changes()); i += 2 {
		req.Header().Set(one.changes()[i], one.changes()[i+1])
	}
	watch, err := signalboxv1connect.NewRunServiceClient(g.client, g.base).WatchRun(t.Context(), req)
	require.NoError(t, err)
	require.True(t, watch.Receive(), "%v", watch.Err())
	_, err = g.sessions.Revoke(auth.WithActor(t.Context(), auth.Local()), one.id, "")
	require.NoError(t, err)
	g.do("POST", "/v1/projects/shop/runs/"+id+":cancel", `{}`, admin...).ok()
	for watch.Receive() {
		require.False(t, watch.Msg().GetRun().GetCancelRequested(), "nothing is sent after the end of the session")
	}
	requireReason(t, watch.Err(), connect.CodeUnauthenticated, apperror.SessionEnded)
	require.NoError(t, watch.Close())
}

func TestWithoutTokensThereIsNothingToSignInTo(t *testing.T) {
	t.Parallel()
	var late struct{ *session.Service }
	p := start(t, func(o *rpc.Options) { o.Sessions = &late })
	tokens := token.NewService(p.store.Tokens(), p.store, token.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	late.Service = session.NewService(p.store.Sessions(), tokens,
		session.Options{Idle: time.Hour, Max: time.Hour, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	current := p.do("GET", "/v1/session", "").ok()["current"].(map[string]any)
	require.Equal(t, "none", current["authentication"])
	require.Equal(t, "local", current["actorKind"])
	require.Equal(t, map[string]any{"*": "admin"}, current["roles"])
	a := p.do("POST", "/v1/session:sign-in", `{"token":"sbx_x"}`)
	require.Contains(t, a.fails(400, apperror.SignInNotNeeded), "auth.mode is none")
	require.Empty(t, a.header.Values("Set-Cookie"))
	p.do("POST", "/v1/session:sign-out", `{}`).fails(400, apperror.NoSession)
	require.Empty(t, p.do("GET", "/v1/sessions", "").ok()["sessions"])
}
