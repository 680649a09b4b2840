package rpc_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/session"
	"github.com/signalbox-dev/signalbox/internal/token"
)

// guarded is a server with tokens.
type guarded struct {
	*platform

	tokens   *token.Service
	sessions *session.Service
}

func startGuarded(t *testing.T, change func(*rpc.Options)) *guarded {
	t.Helper()
	var late struct{ *token.Service }
	var sessions struct{ *session.Service }
	p := start(t, func(o *rpc.Options) {
		o.Access.Authenticator, o.Tokens, o.Sessions = &late, &late, &sessions
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
		if change != nil {
			change(o)
		}
	})
	late.Service = token.NewService(p.store.Tokens(), p.store,
		token.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	sessions.Service = session.NewService(p.store.Sessions(), late.Service, session.Options{
		Idle: time.Hour, Max: time.Hour, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	for _, name := range []string{"shop", "lab"} {
		_, err := project.NewService(p.store, time.Now).Create(t.Context(), name, "")
		require.NoError(t, err)
	}
	return &guarded{platform: p, tokens: late.Service, sessions: sessions.Service}
}

// token creates a token, and returns its ID and the header to send it in.
func (g *guarded) token(roles map[string]auth.Role) (id string, header []string) {
	g.t.Helper()
	made, text, err := g.tokens.Create(auth.WithActor(g.t.Context(), auth.Local()),
		token.Request{Name: fmt.Sprintf("t%d", time.Now().UnixNano()), Roles: roles})
	require.NoError(g.t, err)
	return made.ID, []string{"Authorization", "Bearer " + text}
}

func TestRequestsWithoutTokenAreRefused(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	for _, r := range [][]string{
		{"GET", "/v1/version", ""}, {"GET", "/v1/projects/default/runs", ""},
		{"POST", "/v1/projects/default/runs", `{"workflow":"x"}`},
		{"POST", "/v1/projects/default/events", `{}`}, {"GET", "/metrics", ""}, {"GET", "/v1/nowhere", ""},
		{"GET", "/nowhere", ""}, {"GET", "/v1/whoami", ""},
		{"DELETE", "/metrics", ""}, {"GET", "//livez", ""}, {"GET", "/livez/", ""},
	} {
		a := g.do(r[0], r[1], r[2])
		require.Equal(t, http.StatusUnauthorized, a.status, r)
		require.Contains(t, a.body, "this server requires a token", r)
		require.Equal(t, `Bearer realm="signalbox"`, a.header.Get("WWW-Authenticate"), r)
		require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
	}
	g.do("POST", "/signalbox.v1.SystemService/GetVersion", `{}`).connectFails(401, "unauthenticated",
		apperror.Unidentified)
	for _, options := range [][]connect.ClientOption{nil, {connect.WithGRPC()}, {connect.WithGRPCWeb()}} {
		_, err := signalboxv1connect.NewSystemServiceClient(h2c(), g.base, options...).GetVersion(t.Context(),
			connect.NewRequest(&signalboxv1.GetVersionRequest{}))
		requireReason(t, err, connect.CodeUnauthenticated, apperror.Unidentified)
		watch, err := signalboxv1connect.NewRunServiceClient(h2c(), g.base, options...).WatchRun(t.Context(),
			connect.NewRequest(&signalboxv1.WatchRunRequest{Id: "x"}))
		require.NoError(t, err)
		require.False(t, watch.Receive())
		require.Equal(t, connect.CodeUnauthenticated, connect.CodeOf(watch.Err()))
		require.NoError(t, watch.Close())
	}
	reflection := grpcreflect.NewClient(h2c(), g.base, connect.WithGRPC()).NewStream(t.Context())
	_, err := reflection.ListServices()
	require.Equal(t, connect.CodeUnauthenticated, connect.CodeOf(err))
	_, err = reflection.Close()
	require.Error(t, err)

	for _, path := range []string{"/livez", "/"} {
		require.Equal(t, 200, g.do("GET", path, "").status, path)
	}
	require.Equal(t, 200, g.do("POST", "/grpc.health.v1.Health/Check", `{}`).status)
}

// h2c returns an HTTP/2 client without TLS, as gRPC uses.
func h2c() *http.Client {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: &http.Transport{Protocols: protocols, DisableKeepAlives: true}}
}

func TestStopRequiresBothRoles(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	_, publisher := g.token(map[string]auth.Role{"shop": auth.Publisher})
	_, operator := g.token(map[string]auth.Role{"shop": auth.Operator})
	_, both := g.token(map[string]auth.Role{"shop": auth.Publisher, auth.Everywhere: auth.Operator})
	_, admin := g.token(map[string]auth.Role{"shop": auth.Admin})
	const path = "/v1/projects/shop/workflows/demo/x:stop"
	for _, body := range []string{`{"reason":"x"}`, `{"dryRun":true}`} {
		require.Contains(t, g.do("POST", path, body, publisher...).fails(403, apperror.PermissionDenied),
			`lacks the role operator in project "shop"`)
		require.Contains(t, g.do("POST", path, body, operator...).fails(403, apperror.PermissionDenied),
			`lacks the role publisher in project "shop"`)
		g.do("POST", path, body, both...).fails(404, apperror.WorkflowNotFound)
		g.do("POST", path, body, admin...).fails(404, apperror.WorkflowNotFound)
	}
}

func TestWorkflowsOfAllProjectsAreThoseWithRole(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	_, admin := g.token(map[string]auth.Role{auth.Everywhere: auth.Admin})
	_, viewer := g.token(map[string]auth.Role{"shop": auth.Viewer})
	for _, project := range []string{"shop", "default", "lab"} {
		g.do("POST", "/v1/projects/"+project+"/workflows:publish", `{"source":`+quoted(greeting)+`}`, admin...).ok()
	}
	list := func(query string, header []string) (projects []any, next string) {
		found := g.do("GET", "/v1/workflows"+query, "", header...).ok()
		for _, w := range found["workflows"].([]any) {
			projects = append(projects, w.(map[string]any)["project"])
		}
		next, _ = found["nextPageToken"].(string)
		return projects, next
	}
	projects, _ := list("", viewer)
	require.Equal(t, []any{"shop"}, projects)
	projects, next := list("?pageSize=2", admin)
	require.Equal(t, []any{"default", "lab"}, projects)
	projects, next = list("?pageSize=2&pageToken="+next, admin)
	require.Equal(t, []any{"shop"}, projects)
	require.Empty(t, next)
	projects, _ = list("?text=none", admin)
	require.Empty(t, projects)
	g.do("GET", "/v1/workflows?states=open", "", admin...).fails(400, apperror.InvalidArgument)
}

func TestRolesAreEnforcedInEveryProtocol(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, func(o *rpc.Options) { o.Events, o.EventLimits = newFakeEvents(), event.DefaultLimits() })
	_, viewer := g.token(map[string]auth.Role{"shop": auth.Viewer})
	_, operator := g.token(map[string]auth.Role{"shop": auth.Operator, "default": auth.Operator})
	_, all := g.token(map[string]auth.Role{auth.Everywhere: auth.Viewer})

	g.do("GET", "/v1/projects/shop/runs", "", viewer...).ok()
	denied := g.do("POST", "/v1/projects/shop/runs", `{"workflow":"x"}`, viewer...).fails(403, apperror.PermissionDenied)
	require.Contains(t, denied, "lacks the role operator in project \"shop\"")
	g.do("POST", "/v1/projects/shop/runs", `{"workflow":"x"}`, operator...).fails(404, apperror.WorkflowNotFound)
	foreign := g.do("GET", "/v1/projects/lab/runs", "", operator...).fails(404, apperror.ProjectNotFound)
	missing := g.do("GET", "/v1/projects/gone/runs", "", operator...).fails(404, apperror.ProjectNotFound)
	require.Equal(t, strings.ReplaceAll(missing, "gone", "lab"), foreign)
	known := g.do("GET", "/v1/projects/gone/runs", "", all...).fails(404, apperror.ProjectNotFound)
	require.Equal(t, missing, known, "viewers of all projects get the same response")

	post := append([]string{"Content-Type", structured}, viewer...)
	g.do("POST", "/v1/projects/shop/events", cloudEvent, post...).fails(403, apperror.PermissionDenied)
	post = append([]string{"Content-Type", structured}, operator...)
	require.Equal(t, http.StatusAccepted, g.do("POST", posts, cloudEvent, post...).status)
	g.do("POST", "/v1/projects/lab/events", cloudEvent, post...).fails(404, apperror.ProjectNotFound)

	seen := g.do("GET", "/v1/projects", "", viewer...).ok()["projects"].([]any)
	require.Len(t, seen, 1)
	require.Equal(t, []any{"viewer"}, seen[0].(map[string]any)["roles"])
	require.Len(t, g.do("GET", "/v1/projects", "", all...).ok()["projects"], 3)
	g.do("GET", "/metrics", "", viewer...).connectFails(403, "permission_denied", apperror.PermissionDenied)
	require.Equal(t, 200, g.do("GET", "/metrics", "", all...).status)
	g.do("GET", "/v1/system/status", "", viewer...).fails(403, apperror.PermissionDenied)
	g.do("GET", "/v1/projects/-/audit", "", all...).fails(403, apperror.PermissionDenied)
	me := g.do("GET", "/v1/whoami", "", viewer...).ok()
	require.Equal(t, map[string]any{"shop": "viewer"}, me["roles"])
}

func TestControlStatesFollowRunAndRole(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	_, admin := g.token(map[string]auth.Role{auth.Everywhere: auth.Admin})
	_, viewer := g.token(map[string]auth.Role{"default": auth.Viewer})
	g.do("POST", "/v1/projects/default/workflows:publish", `{"source":`+quoted(greeting)+`}`, admin...).ok()
	started := g.do("POST", "/v1/projects/default/runs", `{"workflow":"hello","input":{}}`,
		admin...).ok()["run"].(map[string]any)
	path := "/v1/projects/default/runs/" + started["id"].(string)
	states := func(shown any) map[string]any {
		found := map[string]any{}
		for _, state := range shown.(map[string]any)["controlStates"].([]any) {
			s := state.(map[string]any)
			found[s["control"].(string)] = s
			delete(s, "control")
		}
		return found
	}
	forbidden := map[string]any{
		"effect": "forbidden", "reason": apperror.PermissionDenied, "detail": "Needs operator in default"}
	yes := map[string]any{"effect": "yes"}
	unchanged := func(detail string) map[string]any { return map[string]any{"effect": "no_effect", "detail": detail} }
	want := map[string]any{
		"cancel": yes, "terminate": yes, "pause": yes, "replay": yes, "export": yes,
		"unpause":      unchanged("The run is not paused"),
		"resume_quota": unchanged("The run does not wait for the quota of steps"),
	}
	require.Equal(t, want, states(started), "a response to a start")
	require.Equal(t, want, states(g.do("GET", path, "", admin...).ok()["run"]))
	for _, list := range []any{
		g.do("GET", path, "", viewer...).ok()["run"],
		g.do("GET", "/v1/projects/default/runs", "", viewer...).ok()["runs"].([]any)[0]} {
		require.Equal(t, map[string]any{
			"cancel": forbidden, "terminate": forbidden, "pause": forbidden, "unpause": forbidden, "resume_quota": forbidden,
			"replay": forbidden, "export": yes,
		}, states(list))
	}

	terminated := g.do("POST", path+":terminate", `{"reason":"test"}`, admin...).ok()["run"]
	refused := map[string]any{
		"effect": "refused", "reason": apperror.RunEnded, "detail": "The run has ended already: it is terminated"}
	require.Equal(t, map[string]any{
		"cancel": refused, "terminate": refused, "pause": refused, "unpause": refused, "resume_quota": refused, "replay": yes,
		"export": yes,
	}, states(terminated))
	require.Equal(t, forbidden, states(g.do("GET", path, "", viewer...).ok()["run"])["cancel"],
		"the role is checked before the state")
}

const cloudEvent = `{"specversion":"1.0","id":"1","source":"/s","type":"t"}`

func TestListsShowOnlyVisibleProjects(t *testing.T) {
	t.Parallel()
	fake := &fakeDispatchers{}
	var late struct{ *dispatcher.Service }
	g := startGuarded(t, func(o *rpc.Options) { o.Dispatchers = &late })
	late.Service = fake.service(g.store)
	fake.all = []dispatchtype.Dispatcher{named("lab", dispatchtype.Routing), named("shop", dispatchtype.Routing)}
	serves := func(projects ...string) dispatchtype.Heartbeat { return dispatchtype.Heartbeat{Projects: projects} }
	fake.workers = []dispatchtype.Worker{
		{ServerID: "a", Status: dispatchtype.WorkerAlive, Heartbeat: serves("lab")},
		{ServerID: "b", Status: dispatchtype.WorkerAlive, Heartbeat: serves("lab", "shop")},
		{ServerID: "c", Status: dispatchtype.WorkerAlive},
	}
	_, viewer := g.token(map[string]auth.Role{"shop": auth.Viewer})
	_, all := g.token(map[string]auth.Role{auth.Everywhere: auth.Viewer})
	require.Len(t, g.do("GET", "/v1/dispatchers", "", all...).ok()["dispatchers"], 2)
	found := g.do("GET", "/v1/dispatchers", "", viewer...)
	require.Len(t, found.ok()["dispatchers"], 1)
	require.NotContains(t, found.body, "lab")
	require.Len(t, g.do("GET", "/v1/workers", "", all...).ok()["workers"], 3)
	found = g.do("GET", "/v1/workers", "", viewer...)
	require.Len(t, found.ok()["workers"], 2)
	require.NotContains(t, found.body, "lab")
	g.do("GET", "/v1/workers?project=lab", "", viewer...).fails(404, apperror.ProjectNotFound)
}

func TestTokenMethods(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	_, admin := g.token(map[string]auth.Role{"shop": auth.Admin})
	made := g.do("POST", "/v1/tokens", `{"name":"ci","roles":{"shop":"operator"},"expireTime":"2100-01-01T00:00:00Z"}`,
		admin...).ok()
	secret, of := made["secret"].(string), made["token"].(map[string]any)
	require.Equal(t, map[string]any{"shop": "operator"}, of["roles"])
	require.Equal(t, "2100-01-01T00:00:00Z", of["expireTime"])
	ci := []string{"Authorization", "bearer " + secret}
	g.do("GET", "/v1/projects/shop/runs", "", ci...).ok()
	g.do("POST", "/v1/tokens", `{"name":"more","roles":{"shop":"viewer"}}`, ci...).fails(403, apperror.PermissionDenied)
	g.do("POST", "/v1/tokens", `{"name":"more","roles":{"*":"viewer"}}`, admin...).fails(403, apperror.PermissionDenied)
	list := g.do("GET", "/v1/tokens", "", admin...)
	require.Len(t, list.ok()["tokens"], 2)
	require.NotContains(t, list.body, secret)
	require.Empty(t, g.do("GET", "/v1/tokens", "", ci...).ok()["tokens"])

	g.do("POST", "/v1/tokens/"+of["id"].(string)+":revoke", `{"reason":"lost"}`, admin...).ok()
	g.do("GET", "/v1/projects/shop/runs", "", ci...).fails(401, apperror.TokenRevoked)
	require.NotContains(t, g.log.String(), secret)
}

func TestWatchEndsWhenTokenIsRevoked(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	_, admin := g.token(map[string]auth.Role{auth.Everywhere: auth.Admin})
	g.do("POST", "/v1/projects/shop/workflows:publish", `{"source":`+quoted(greeting)+`}`, admin...).ok()
	id := g.do("POST", "/v1/projects/shop/runs", `{"workflow":"hello","input":{}}`,
		admin...).ok()["run"].(map[string]any)["id"].(string)
	viewer, header := g.token(map[string]auth.Role{"shop": auth.Viewer})
	req := connect.NewRequest(&signalboxv1.WatchRunRequest{Project: "shop", Id: id})
	req.Header().Set(header[0], header[1])
	watch, err := signalboxv1connect.NewRunServiceClient(g.client, g.base).WatchRun(t.Context(), req)
	require.NoError(t, err)
	require.True(t, watch.Receive(), "%v", watch.Err())
	_, err = g.tokens.Revoke(auth.WithActor(t.Context(), auth.Local()), viewer, "")
	require.NoError(t, err)
	g.do("POST", "/v1/projects/shop/runs/"+id+":cancel", `{}`, admin...).ok()
	for watch.Receive() {
		require.False(t, watch.Msg().GetRun().GetCancelRequested(), "nothing is sent after the revocation")
	}
	requireReason(t, watch.Err(), connect.CodeUnauthenticated, apperror.TokenRevoked)
	require.NoError(t, watch.Close())
}

func TestAuditExportIsComplete(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	_, admin := g.token(map[string]auth.Role{auth.Everywhere: auth.Admin})
	service := project.NewService(g.store, time.Now)
	const many = 600 // more than is read at a time
	for i := range many {
		_, err := service.Create(t.Context(), fmt.Sprintf("p%d", i), "")
		require.NoError(t, err)
	}
	export := func(format, action string) (string, error) {
		req := connect.NewRequest(&signalboxv1.ExportAuditRequest{Project: "-", Format: format, Action: action})
		req.Header().Set(admin[0], admin[1])
		stream, err := signalboxv1connect.NewAuditServiceClient(g.client, g.base).ExportAudit(t.Context(), req)
		require.NoError(t, err)
		var text strings.Builder
		for stream.Receive() {
			text.Write(stream.Msg().GetData())
		}
		require.NoError(t, stream.Close())
		return text.String(), stream.Err()
	}
	for format, head := range map[string]int{"csv": 1, "json": 0} {
		text, err := export(format, "project.create")
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(text), "\n")
		require.Len(t, lines, head+2+many)
		require.Contains(t, lines[head], "shop", "the oldest comes first")
		require.Contains(t, lines[len(lines)-1], fmt.Sprintf("p%d", many-1))
	}
	text, err := export("csv", "none.such")
	require.NoError(t, err)
	require.Equal(t, "id,time,actor_kind,actor,action,project,subject,reason,detail\n", text)
	_, err = export("xml", "")
	requireReason(t, err, connect.CodeInvalidArgument, apperror.InvalidArgument)
}

func TestTokenRateIsLimited(t *testing.T) {
	t.Parallel()
	refused := make(chan string, 100)
	g := startGuarded(t, func(o *rpc.Options) {
		o.Access.Rate, o.Access.Burst = 0.001, 3
		o.Access.Refused = func(_ context.Context, reason string) { refused <- reason }
	})
	_, one := g.token(map[string]auth.Role{"shop": auth.Viewer})
	_, other := g.token(map[string]auth.Role{"shop": auth.Viewer})
	for range 3 {
		g.do("GET", "/v1/version", "", one...).ok()
	}
	a := g.do("GET", "/v1/version", "", one...)
	require.Contains(t, a.fails(429, apperror.RateLimited), "api.rate_limit")
	require.NotEmpty(t, a.header.Get("Retry-After"))
	require.Contains(t, a.body, "google.rpc.RetryInfo")
	require.Equal(t, apperror.RateLimited, <-refused)
	g.do("GET", "/v1/version", "", other...).ok()
}
