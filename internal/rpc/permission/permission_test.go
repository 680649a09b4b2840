package permission_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/rpc/permission"
)

// methods lists all methods of the API.
func methods() (all []protoreflect.MethodDescriptor) {
	protoregistry.GlobalFiles.RangeFilesByPackage(signalboxv1.File_signalbox_v1_run_proto.Package(),
		func(f protoreflect.FileDescriptor) bool {
			for i := range f.Services().Len() {
				service := f.Services().Get(i)
				for j := range service.Methods().Len() {
					all = append(all, service.Methods().Get(j))
				}
			}
			return true
		})
	return all
}

func procedure(m protoreflect.MethodDescriptor) string {
	return fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
}

func TestEveryMethodHasOneRow(t *testing.T) {
	t.Parallel()
	rows := map[string]permission.Rule{}
	for _, r := range permission.Table() {
		require.NotContains(t, rows, r.Procedure)
		rows[r.Procedure] = r
	}
	require.Greater(t, len(methods()), 40)
	for _, m := range methods() {
		r, ok := rows[procedure(m)]
		require.True(t, ok, "%s has no row: add one to permission.Table", procedure(m))
		field := map[permission.Scope]protoreflect.Name{
			permission.Project: "project", permission.Name: "name", permission.ProjectOrAll: "project"}[r.Scope]
		if field != "" {
			require.NotNil(t, m.Input().Fields().ByName(field), "%s has no field %q", r.Procedure, field)
			require.True(t, r.Role.Known(), r.Procedure)
		}
		if r.Scope == permission.Nowhere {
			require.Nil(t, m.Input().Fields().ByName("project"), "%s names a project, and asks for no role in it", r.Procedure)
		}
		delete(rows, procedure(m))
	}
	require.Empty(t, rows, "rows without a method")
}

var errReached = errors.New("the method was reached")

// api serves all methods; each returns a marker error when it is reached. The header Actor names the caller.
type api struct {
	url    string
	client *http.Client

	mu      sync.Mutex
	denials []permission.Denial
	revoked bool
}

func serve(t *testing.T) *api {
	t.Helper()
	a := &api{}
	interceptor := permission.NewInterceptor(permission.InterceptorOptions{
		CheckValid: func(context.Context, auth.Actor) error {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.revoked {
				return connect.NewError(connect.CodeUnauthenticated, errors.New("revoked"))
			}
			return nil
		},
		Denied: func(_ context.Context, d permission.Denial) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.denials = append(a.denials, d)
		},
	})
	mux := http.NewServeMux()
	for _, m := range methods() {
		mux.Handle(procedure(m), handler(m, interceptor))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(auth.WithActor(r.Context(), actors()[r.Header.Get("Actor")])))
	}))
	t.Cleanup(server.Close)
	a.url, a.client = server.URL, server.Client()
	return a
}

// coded maps errors like the API's own interceptor.
type coded struct{}

func (coded) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		res, err := next(ctx, req)
		return res, code(err)
	}
}

func (coded) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error { return code(next(ctx, conn)) }
}

func (coded) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func code(err error) error {
	if f, ok := apperror.From(err); ok {
		return connect.NewError(map[apperror.Class]connect.Code{
			apperror.NotFound: connect.CodeNotFound, apperror.Denied: connect.CodePermissionDenied}[f.Class], f)
	}
	return err
}

func handler(m protoreflect.MethodDescriptor, i connect.Interceptor) http.Handler {
	options := []connect.HandlerOption{
		connect.WithInterceptors(coded{}, i), connect.WithSchema(m),
		connect.WithRequestInitializer(func(_ connect.Spec, message any) error {
			if d, ok := message.(*dynamicpb.Message); ok {
				*d = *dynamicpb.NewMessage(m.Input())
			}
			return nil
		}),
	}
	if m.IsStreamingServer() {
		return connect.NewServerStreamHandler(procedure(m),
			func(_ context.Context, _ *connect.Request[dynamicpb.Message], s *connect.ServerStream[dynamicpb.Message]) error {
				if err := s.Send(dynamicpb.NewMessage(m.Output())); err != nil {
					return err
				}
				return connect.NewError(connect.CodeAborted, errReached)
			}, options...)
	}
	return connect.NewUnaryHandler(procedure(m),
		func(context.Context, *connect.Request[dynamicpb.Message]) (*connect.Response[dynamicpb.Message], error) {
			return nil, connect.NewError(connect.CodeAborted, errReached)
		}, options...)
}

// actors have a role in the project "shop", in all projects, or only in another project.
func actors() map[string]auth.Actor {
	all := map[string]auth.Actor{"nobody": {}}
	for _, role := range []auth.Role{auth.Viewer, auth.Operator, auth.Publisher, auth.Admin} {
		for where, project := range map[string]string{"shop": "shop", "everywhere": auth.Everywhere, "other": "other"} {
			name := string(role) + " " + where
			all[name] = auth.Actor{Kind: auth.KindToken, Name: name, ID: name, Roles: map[string]auth.Role{project: role}}
		}
	}
	return all
}

// call calls a method with a project in all fields that may name one, and returns the code of its end.
func (a *api) call(t *testing.T, m protoreflect.MethodDescriptor, actor, project string) (connect.Code, string) {
	t.Helper()
	message := dynamicpb.NewMessage(m.Input())
	for _, name := range []protoreflect.Name{"project", "name"} {
		if field := m.Input().Fields().ByName(name); field != nil && field.Kind() == protoreflect.StringKind {
			message.Set(field, protoreflect.ValueOfString(project))
		}
	}
	var err error
	options := []connect.ClientOption{
		connect.WithSchema(m), connect.WithResponseInitializer(func(_ connect.Spec, res any) error {
			if d, ok := res.(*dynamicpb.Message); ok {
				*d = *dynamicpb.NewMessage(m.Output())
			}
			return nil
		})}
	client := connect.NewClient[dynamicpb.Message, dynamicpb.Message](a.client, a.url+procedure(m), options...)
	req := connect.NewRequest(message)
	req.Header().Set("Actor", actor)
	if !m.IsStreamingServer() {
		_, err = client.CallUnary(t.Context(), req)
	} else {
		var stream *connect.ServerStreamForClient[dynamicpb.Message]
		if stream, err = client.CallServerStream(t.Context(), req); err == nil {
			for stream.Receive() {
				continue
			}
			err = errors.Join(stream.Err(), stream.Close())
		}
	}
	require.Error(t, err, procedure(m))
	return connect.CodeOf(err), err.Error()
}

// TestEveryMethodForEveryRole calls every method as every actor, over HTTP, and compares the responses with the meaning
// of the roles.
func TestEveryMethodForEveryRole(t *testing.T) {
	t.Parallel()
	a := serve(t)
	rows := map[string]permission.Rule{}
	for _, r := range permission.Table() {
		rows[r.Procedure] = r
	}
	for _, m := range methods() {
		r := rows[procedure(m)]
		for name := range actors() {
			role, where, _ := strings.Cut(name, " ")
			got, text := a.call(t, m, name, "shop")
			require.Equal(t, expected(r, m, auth.Role(role), where), got, "%s as %s: %s", r.Procedure, name, text)
			if got != connect.CodeNotFound {
				continue
			}
			_, missing := a.call(t, m, name, "missing")
			require.Equal(t, strings.ReplaceAll(missing, `"missing"`, `"shop"`), text,
				"a foreign project looks like a missing one")
		}
	}
}

// expected computes the result for a caller independently of the table's code.
func expected(r permission.Rule, m protoreflect.MethodDescriptor, role auth.Role, where string) connect.Code {
	includes := map[auth.Role][]auth.Role{
		auth.Viewer: {auth.Viewer}, auth.Operator: {auth.Viewer, auth.Operator},
		auth.Publisher: {auth.Viewer, auth.Publisher},
		auth.Admin:     {auth.Viewer, auth.Operator, auth.Publisher, auth.Admin},
	}[role]
	switch r.Scope {
	case permission.Nowhere:
		return connect.CodeAborted // reached
	case permission.Visible:
		if m.Input().Fields().ByName("project") == nil || where == "shop" || where == "everywhere" {
			return connect.CodeAborted
		}
		return connect.CodeNotFound
	case permission.Everywhere:
		if where == "everywhere" && slices.Contains(includes, r.Role) {
			return connect.CodeAborted
		}
		return connect.CodePermissionDenied
	case permission.Project, permission.Name, permission.ProjectOrAll:
		switch {
		case where != "shop" && where != "everywhere":
			return connect.CodeNotFound
		case m.Name() == "StopWorkflow" && role != auth.Admin:
			return connect.CodePermissionDenied // it requires publisher and operator, which only admin includes
		case slices.Contains(includes, r.Role):
			return connect.CodeAborted
		}
	}
	return connect.CodePermissionDenied
}

func TestAllProjectsRequireGlobalAdmin(t *testing.T) {
	t.Parallel()
	a := serve(t)
	for _, m := range methods() {
		if m.Name() != "ListAudit" && m.Name() != "ExportAudit" {
			continue
		}
		for name := range actors() {
			got, _ := a.call(t, m, name, "-")
			require.Equal(t, name == "admin everywhere", got == connect.CodeAborted, "%s as %s", m.Name(), name)
		}
	}
}

func TestDenialsAreReported(t *testing.T) {
	t.Parallel()
	a := serve(t)
	for _, m := range methods() {
		a.call(t, m, "viewer shop", "shop")
	}
	var changing []string
	for _, d := range a.denials {
		require.True(t, apperror.Is(d.Err, apperror.PermissionDenied), "%v", d.Err)
		if d.Changes {
			_, method, _ := strings.Cut(d.Method, "/")
			changing = append(changing, method)
		}
	}
	require.Contains(t, changing, "StartRun")
	require.Contains(t, changing, "HandOverDispatcher")
	require.NotContains(t, changing, "GetStatus")
}

func TestStreamEndsWithToken(t *testing.T) {
	t.Parallel()
	a := serve(t)
	a.revoked = true
	for _, m := range methods() {
		if m.Name() == "WatchRun" {
			got, _ := a.call(t, m, "viewer shop", "shop")
			require.Equal(t, connect.CodeUnauthenticated, got)
		}
	}
}

func TestMethodWithoutRowIsRefused(t *testing.T) {
	t.Parallel()
	i := permission.NewInterceptor(permission.InterceptorOptions{})
	reached := i.WrapUnary(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
		return nil, errReached
	})
	_, err := reached(auth.WithActor(t.Context(), auth.Local()), connect.NewRequest[proto.Message](nil))
	require.Error(t, err)
	require.NotErrorIs(t, err, errReached)
}
