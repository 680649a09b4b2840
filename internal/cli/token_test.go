package cli_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/api/httpbody"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/cli"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/tokencmd"
)

// ExportAudit sends a file in two parts.
func (a *api) ExportAudit(_ context.Context, request *connect.Request[signalboxv1.ExportAuditRequest],
	stream *connect.ServerStream[httpbody.HttpBody]) error {
	a.mu.Lock()
	a.note(request.Msg)
	a.mu.Unlock()
	for _, part := range []string{"id,time\n", "1,now\n"} {
		if err := stream.Send(&httpbody.HttpBody{ContentType: "text/csv", Data: []byte(part)}); err != nil {
			return err
		}
	}
	return nil
}

// tokenServer is a server that accepts one token: "right".
type tokenServer struct {
	signalboxv1connect.UnimplementedTokenServiceHandler
	sessionServer

	mu      sync.Mutex
	created *signalboxv1.CreateTokenRequest
	revoked *signalboxv1.RevokeTokenRequest
}

func (g *tokenServer) handler() http.Handler {
	mux := http.NewServeMux()
	add := func(path string, inner http.Handler) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer right" {
				_ = connect.NewErrorWriter().Write(w, r,
					refusal(connect.CodeUnauthenticated, "UNAUTHENTICATED", "this server requires a token"))
				return
			}
			inner.ServeHTTP(w, r)
		})
	}
	add(signalboxv1connect.NewTokenServiceHandler(g))
	add(signalboxv1connect.NewSessionServiceHandler(&g.sessionServer))
	return mux
}

// sessionServer has one open session.
type sessionServer struct {
	signalboxv1connect.UnimplementedSessionServiceHandler

	mu      sync.Mutex
	revoked *signalboxv1.RevokeSessionRequest
}

func moment(hour int) *timestamppb.Timestamp {
	return timestamppb.New(time.Date(2026, 3, 1, hour, 0, 0, 0, time.UTC))
}

func (s *sessionServer) ListSessions(context.Context,
	*connect.Request[signalboxv1.ListSessionsRequest]) (*connect.Response[signalboxv1.ListSessionsResponse], error) {
	return connect.NewResponse(&signalboxv1.ListSessionsResponse{Sessions: []*signalboxv1.Session{{
		Id: "s1", TokenId: "abc", TokenName: "ada", CreateTime: moment(8), LastUsedTime: moment(9),
		IdleExpireTime: moment(10), ExpireTime: moment(20),
	}}}), nil
}

func (s *sessionServer) RevokeSession(_ context.Context,
	r *connect.Request[signalboxv1.RevokeSessionRequest]) (*connect.Response[signalboxv1.RevokeSessionResponse], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked = r.Msg
	if r.Msg.GetId() != "s1" {
		return nil, refusal(connect.CodeNotFound, "SESSION_NOT_FOUND", "session not found")
	}
	return connect.NewResponse(
		&signalboxv1.RevokeSessionResponse{
			Session: &signalboxv1.Session{Id: "s1", TokenId: "abc", TokenName: "ada", EndTime: moment(9)}}), nil
}

func (g *tokenServer) WhoAmI(context.Context,
	*connect.Request[signalboxv1.WhoAmIRequest]) (*connect.Response[signalboxv1.WhoAmIResponse], error) {
	return connect.NewResponse(
			&signalboxv1.WhoAmIResponse{Kind: "token", Name: "ada", Roles: map[string]string{"shop": "admin", "*": "viewer"}}),
		nil
}

func (g *tokenServer) CreateToken(_ context.Context,
	r *connect.Request[signalboxv1.CreateTokenRequest]) (*connect.Response[signalboxv1.CreateTokenResponse], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.created = r.Msg
	return connect.NewResponse(&signalboxv1.CreateTokenResponse{
		Token: &signalboxv1.Token{
			Id: "abc", Name: r.Msg.GetName(), Roles: r.Msg.GetRoles(), ExpireTime: r.Msg.GetExpireTime()},
		Secret: "sbx_abc_secret",
	}), nil
}

func (g *tokenServer) ListTokens(context.Context,
	*connect.Request[signalboxv1.ListTokensRequest]) (*connect.Response[signalboxv1.ListTokensResponse], error) {
	return connect.NewResponse(
		&signalboxv1.ListTokensResponse{
			Tokens: []*signalboxv1.Token{{Id: "abc", Name: "ci", Roles: map[string]string{"shop": "operator"}}}}), nil
}

func (g *tokenServer) RevokeToken(_ context.Context,
	r *connect.Request[signalboxv1.RevokeTokenRequest]) (*connect.Response[signalboxv1.RevokeTokenResponse], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.revoked = r.Msg
	return connect.NewResponse(&signalboxv1.RevokeTokenResponse{Token: &signalboxv1.Token{Id: r.Msg.GetId(), Name: "ci"}}),
		nil
}

func startTokenServer(t *testing.T) (*tokenServer, *httptest.Server) {
	t.Helper()
	g := &tokenServer{}
	server := httptest.NewTLSServer(g.handler())
	t.Cleanup(server.Close)
	return g, server
}

func authorities(t *testing.T, server *httptest.Server) string {
	t.Helper()
	return write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
}

func TestKeysOfEveryoneAreRefused(t *testing.T) {
	t.Parallel()
	_, server := startTokenServer(t)
	shell := newShell(t, server.URL)
	shell.env["SIGNALBOX_CA_FILE"] = authorities(t, server)
	shell.env["SIGNALBOX_CERT_FILE"], shell.env["SIGNALBOX_KEY_FILE"] = shell.env["SIGNALBOX_CA_FILE"],
		write(t, "key.pem", "key")
	require.NoError(t, os.Chmod(shell.env["SIGNALBOX_KEY_FILE"], 0o644))
	requireRefusal(t, shell.run(t, "whoami"), exit.Usage, "the key of the client certificate cannot be used",
		"can be read by all users of the machine")
	delete(shell.env, "SIGNALBOX_CERT_FILE")
	delete(shell.env, "SIGNALBOX_KEY_FILE")
	token := write(t, "token", "right")
	require.NoError(t, os.Chmod(token, 0o644))
	require.Zero(t, shell.run(t, "context", "set", "there", "--address", server.URL, "--token-file", token).code)
	delete(shell.env, "SIGNALBOX_ADDRESS")
	requireRefusal(t, shell.run(t, "whoami"), exit.Usage, "the token of the current context cannot be read", "chmod 600")
}

func TestTokenSources(t *testing.T) {
	t.Parallel()
	_, server := startTokenServer(t)
	ca, file := authorities(t, server), write(t, "token", " right\n")
	shell := newShell(t, server.URL)
	requireRefusal(t, shell.run(t, "whoami"), exit.Unavailable, "certificate")
	shell.env["SIGNALBOX_CA_FILE"] = ca
	requireRefusal(t, shell.run(t, "whoami"), exit.NotSignedIn, "this server requires a token", "UNAUTHENTICATED")
	c := shell.run(t, "whoami", "--token", "right")
	require.Zero(t, c.code, c.err.String())
	require.Regexp(t, `(?m)^roles +\*=viewer shop=admin$`, c.out.String())
	shell.env["SIGNALBOX_TOKEN"] = "right"
	require.Zero(t, shell.run(t, "whoami").code)
	requireRefusal(t, shell.run(t, "whoami", "--token", "wrong"), exit.NotSignedIn)
	requireRefusal(t, shell.run(t, "whoami", "--token", "two words"), exit.Usage, "--token holds no token")

	// A context's token is only sent to the context's server.
	shell = newShell(t, "")
	delete(shell.env, "SIGNALBOX_ADDRESS")
	require.Zero(t, shell.run(t, "context", "set", "there", "--address", server.URL, "--token-file", file, "--ca-file",
		ca).code)
	require.Zero(t, shell.run(t, "whoami").code)
	_, other := startTokenServer(t)
	requireRefusal(t, shell.run(t, "whoami", "--address", other.URL, "--ca-file", authorities(t, other)), exit.NotSignedIn,
		"requires a token")
	require.Zero(t, shell.run(t, "whoami", "--address", server.URL).code)
	require.Zero(t, shell.run(t, "context", "set", "there", "--token-file", filepath.Join(t.TempDir(), "none")).code)
	requireRefusal(t, shell.run(t, "whoami"), exit.Usage, "the token of the current context", "none")
}

func TestTokenIsNotSentToAnotherServer(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Authorization")
	}))
	t.Cleanup(thief.Close)
	lure := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	t.Cleanup(lure.Close)
	c := newShell(t, lure.URL).run(t, "whoami", "--token", "right")
	require.NotZero(t, c.code)
	require.Contains(t, c.err.String(), thief.URL)
	require.Empty(t, got)
}

func TestTokenCommands(t *testing.T) {
	t.Parallel()
	g, server := startTokenServer(t)
	shell := newShell(t, server.URL)
	shell.env["SIGNALBOX_CA_FILE"], shell.env["SIGNALBOX_TOKEN"] = authorities(t, server), "right"
	c := shell.run(t, "token", "create", "--name", "ci", "--role", "shop=operator", "--role", "*=viewer", "--expires",
		"1d")
	require.Zero(t, c.code, c.err.String())
	require.Equal(t, "sbx_abc_secret\n", c.out.String(), "standard output has the token alone")
	require.NotContains(t, c.err.String(), "secret")
	require.Equal(t, map[string]string{"shop": "operator", "*": "viewer"}, g.created.GetRoles())
	require.WithinDuration(t, time.Now().Add(24*time.Hour), g.created.GetExpireTime().AsTime(), time.Minute)
	var made map[string]any
	require.NoError(t, json.Unmarshal(
		[]byte(shell.run(t, "token", "create", "--name", "ci", "--role", "a=viewer", "-o", "json").out.String()), &made))
	require.Equal(t, "sbx_abc_secret", made["secret"])
	require.Regexp(t, `(?m)^abc +ci +shop=operator +valid`, shell.run(t, "token", "list").out.String())
	require.Zero(t, shell.run(t, "token", "revoke", "abc", "--reason", "lost").code)
	require.Equal(t, "lost", g.revoked.GetReason())
	require.Regexp(t, `(?m)^s1 +ada +abc +2026-03-01`, shell.run(t, "token", "sessions").out.String())
	c = shell.run(t, "token", "revoke-session", "s1", "--reason", "left")
	require.Zero(t, c.code, c.err.String())
	require.Regexp(t, `(?m)^ended +2026-03-01`, c.out.String())
	require.Equal(t, "left", g.sessionServer.revoked.GetReason())
	requireRefusal(t, shell.run(t, "token", "revoke-session", "s2"), exit.NotFound, "SESSION_NOT_FOUND")
	for line, part := range map[string]string{
		"token revoke-session":                                  "ID",
		"token create --role a=viewer":                          "--name is missing",
		"token create --name x":                                 "--role is missing",
		"token create --name x --role viewer":                   "project=role",
		"token create --name x --role a=viewer --role a=admin":  "named twice",
		"token create --name x --role a=viewer --expires never": "--expires",
		"token create --name x --role a=viewer --expires -1h":   "--expires",
		"audit export --format xml":                             "neither csv nor json",
	} {
		requireRefusal(t, shell.run(t, strings.Fields(line)...), exit.Usage, part)
	}
}

func TestBootstrapTokenNeedsNoServer(t *testing.T) {
	t.Parallel()
	var wanted tokencmd.Wanted
	var out, problems buffer
	code := cli.Run(t.Context(), cli.Options{
		Stdout: &out, Stderr: &problems, Env: map[string]string{"HOME": t.TempDir(), "SIGNALBOX_ADDRESS": "127.0.0.1:1"},
		Bootstrap: func(_ context.Context, flags *pflag.FlagSet, w tokencmd.Wanted) (tokencmd.Made, error) {
			wanted = w
			require.Equal(t, "here.db", flags.Lookup("store-dsn").Value.String())
			return tokencmd.Made{ID: "abc", Secret: "sbx_abc_secret", Creator: "local", CreatedAt: time.Now()}, nil
		},
	}, []string{"token", "create", "--bootstrap", "--name", "ada", "--store-dsn", "here.db"})
	require.Zero(t, code, problems.String())
	require.Equal(t, "sbx_abc_secret\n", out.String())
	require.Equal(t, tokencmd.Wanted{Name: "ada", Roles: map[string]string{"*": "admin"}}, wanted)
}

func TestAuditExport(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	c := shell.run(t, "audit", "export", "--project", "-", "--action", "run.start")
	require.Zero(t, c.code, c.err.String())
	require.Equal(t, "id,time\n1,now\n", c.out.String())
	request := last[*signalboxv1.ExportAuditRequest](t, a)
	require.Equal(t, []string{"-", "run.start", "csv"},
		[]string{request.GetProject(), request.GetAction(), request.GetFormat()})
}
