package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/rpc/handler"
	"github.com/signalbox-dev/signalbox/internal/rpc/permission"
	"github.com/signalbox-dev/signalbox/internal/rpc/rest"
)

// stack serves every method of the API behind the table of permissions, and records the requests that reach a method.
// The caller is an administrator of the project "pa" alone.
type stack struct {
	handler http.Handler

	mu      sync.Mutex
	reached []call
}

type call struct {
	procedure string
	message   protoreflect.Message
}

var errReached = errors.New("the method was reached")

func newStack(t *testing.T) *stack {
	t.Helper()
	s := &stack{}
	interceptors := connect.WithInterceptors(rest.NewInterceptor(), mapped{},
		permission.NewInterceptor(permission.InterceptorOptions{}))
	var services []handler.Service
	protoregistry.GlobalFiles.RangeFilesByPackage(signalboxv1.File_signalbox_v1_run_proto.Package(),
		func(f protoreflect.FileDescriptor) bool {
			for i := range f.Services().Len() {
				service, mux := f.Services().Get(i), http.NewServeMux()
				for j := range service.Methods().Len() {
					m := service.Methods().Get(j)
					mux.Handle(procedure(m), s.method(m, interceptors))
				}
				services = append(services, handler.Service{Path: "/" + string(service.FullName()) + "/", Handler: mux})
			}
			return true
		})
	var err error
	s.handler, err = rest.New(services, rest.Options{MaxRequestBytes: 1 << 20})
	require.NoError(t, err)
	return s
}

func procedure(m protoreflect.MethodDescriptor) string {
	return fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
}

// mapped maps errors to the codes of the API.
type mapped struct{ connect.Interceptor }

func (mapped) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		res, err := next(ctx, req)
		return res, coded(err)
	}
}

func (mapped) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error { return coded(next(ctx, conn)) }
}

func coded(err error) error {
	if _, ok := apperror.From(err); ok {
		return connect.NewError(connect.CodePermissionDenied, err)
	}
	return err
}

func (s *stack) method(m protoreflect.MethodDescriptor, interceptors connect.Option) http.Handler {
	options := []connect.HandlerOption{
		connect.WithHandlerOptions(interceptors.(connect.HandlerOption)), connect.WithSchema(m),
		connect.WithRequestInitializer(func(_ connect.Spec, message any) error {
			if d, ok := message.(*dynamicpb.Message); ok {
				*d = *dynamicpb.NewMessage(m.Input())
			}
			return nil
		}),
	}
	if o, _ := m.Options().(*descriptorpb.MethodOptions); o.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS {
		options = append(options, connect.WithIdempotency(connect.IdempotencyNoSideEffects))
	}
	record := func(req *connect.Request[dynamicpb.Message]) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reached = append(s.reached, call{procedure(m), req.Msg})
		return connect.NewError(connect.CodeAborted, errReached)
	}
	if m.IsStreamingServer() {
		return connect.NewServerStreamHandler(procedure(m),
			func(_ context.Context, req *connect.Request[dynamicpb.Message], _ *connect.ServerStream[dynamicpb.Message]) error {
				return record(req)
			}, options...)
	}
	return connect.NewUnaryHandler(procedure(m),
		func(_ context.Context, req *connect.Request[dynamicpb.Message]) (*connect.Response[dynamicpb.Message], error) {
			return nil, record(req)
		}, options...)
}

// do sends a request, and returns the response with the call that reached a method, if any.
func (s *stack) do(t *testing.T, verb, target, body string) (*httptest.ResponseRecorder, *call) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), verb, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	actor := auth.Actor{Kind: auth.KindToken, ID: "t", Name: "t", Roles: map[string]auth.Role{"pa": auth.Admin}}
	s.mu.Lock()
	s.reached = nil
	s.mu.Unlock()
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r.WithContext(auth.WithActor(r.Context(), actor)))
	s.mu.Lock()
	defer s.mu.Unlock()
	require.LessOrEqual(t, len(s.reached), 1)
	if len(s.reached) == 0 {
		return w, nil
	}
	return w, &s.reached[0]
}

// path is one HTTP annotation.
type path struct {
	method         protoreflect.MethodDescriptor
	verb, template string
	body           string
}

// paths lists the annotations of all methods.
func paths() (all []path) {
	protoregistry.GlobalFiles.RangeFilesByPackage(signalboxv1.File_signalbox_v1_run_proto.Package(),
		func(f protoreflect.FileDescriptor) bool {
			for i := range f.Services().Len() {
				for j := range f.Services().Get(i).Methods().Len() {
					m := f.Services().Get(i).Methods().Get(j)
					rule, _ := proto.GetExtension(m.Options(), annotations.E_Http).(*annotations.HttpRule)
					if rule == nil {
						continue
					}
					for _, r := range append([]*annotations.HttpRule{rule}, rule.GetAdditionalBindings()...) {
						p := path{method: m, body: r.GetBody()}
						for verb, template := range map[string]string{
							"GET": r.GetGet(), "PUT": r.GetPut(), "POST": r.GetPost(), "DELETE": r.GetDelete(), "PATCH": r.GetPatch()} {
							if template != "" {
								p.verb, p.template = verb, template
							}
						}
						all = append(all, p)
					}
				}
			}
			return true
		})
	return all
}

var variables = regexp.MustCompile(`\{([a-z_]+)(=\*\*)?\}`)

// values fills in the variables of the path: "pa" for the project, the variable names for the others.
func (p path) values() (target string, values map[string]string) {
	values = map[string]string{}
	target = variables.ReplaceAllStringFunc(p.template, func(v string) string {
		found := variables.FindStringSubmatch(v)
		value := map[string]string{
			"project": "pa", "name": "pa", "position": "7", "number": "7", "workflow": "t/one"}[found[1]]
		if value == "" {
			value = "x1"
		}
		values[found[1]] = value
		return value
	})
	return target, values
}

func TestEveryPathCallsItsMethodWithPathValues(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	require.Greater(t, len(paths()), 45)
	for _, p := range paths() {
		target, values := p.values()
		body := ""
		if p.body == "*" {
			body = "{}"
		}
		w, got := s.do(t, p.verb, target, body)
		rule := ruleOf(t, p.method)
		if rule.Scope == permission.Everywhere {
			require.Nil(t, got, "%s needs a role everywhere", target)
			continue
		}
		require.NotNil(t, got, "%s %s: %s", p.verb, target, w.Body)
		require.Equal(t, procedure(p.method), got.procedure)
		for name, value := range values {
			require.Equal(t, value, got.message.Get(p.method.Input().Fields().ByName(protoreflect.Name(name))).String(), target)
		}
		if values["project"] != "" && rule.Scope == permission.Project {
			_, got = s.do(t, p.verb, strings.Replace(target, "/pa", "/pb", 1), body)
			require.Nil(t, got, "%s acts in a project in which the caller has no role", target)
		}
	}
}

func ruleOf(t *testing.T, m protoreflect.MethodDescriptor) permission.Rule {
	t.Helper()
	for _, r := range permission.Table() {
		if r.Procedure == procedure(m) {
			return r
		}
	}
	t.Fatalf("%s has no rule", m.FullName())
	return permission.Rule{}
}

func TestPathVariableInQueryIsRefused(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	for _, p := range paths() {
		target, values := p.values()
		for name, value := range values {
			for _, spelling := range []string{
				name, p.method.Input().Fields().ByName(protoreflect.Name(name)).JSONName(), strings.Replace(name, "o", "%6f", 1)} {
				for _, other := range []string{"pb", value, ""} {
					w, got := s.do(t, p.verb, target+"?"+spelling+"="+other, "")
					require.Nil(t, got, "%s?%s=%s reached %v", target, spelling, other, got)
					require.Equal(t, http.StatusBadRequest, w.Code, w.Body)
					require.Contains(t, w.Body.String(), fmt.Sprintf(`parameter \"%s\"`, name))
				}
			}
		}
	}
}

func TestConflictingPathVariableInBodyIsRefused(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	bodies := 0
	for _, p := range paths() {
		if p.body != "*" {
			continue
		}
		target, values := p.values()
		for name, value := range values {
			bodies++
			field := p.method.Input().Fields().ByName(protoreflect.Name(name))
			for _, spelling := range []string{name, field.JSONName()} {
				w, got := s.do(t, p.verb, target, fmt.Sprintf(`{"%s":"8"}`, spelling))
				require.Nil(t, got, "%s with %s in the body reached %v", target, name, got)
				require.Equal(t, http.StatusBadRequest, w.Code, w.Body)
				require.Contains(t, w.Body.String(), fmt.Sprintf(`\"%s\" in the body`, field.JSONName()))

				same, err := json.Marshal(map[string]any{spelling: value})
				require.NoError(t, err)
				_, got = s.do(t, p.verb, target, string(same))
				require.NotNil(t, got, "the same value does no harm")
				_, got = s.do(t, p.verb, target, fmt.Sprintf(`{"%s":null}`, spelling))
				require.NotNil(t, got, "null is no value")
			}
		}
	}
	require.Greater(t, bodies, 20)
}

func TestAmbiguousQueriesAreRefused(t *testing.T) {
	t.Parallel()
	const runs, export, replay = "/v1/projects/pa/runs", "/v1/projects/pa/runs:export", "/v1/projects/pa/runs/r1:replay"
	tests := map[string]struct{ verb, target, body, says string }{
		"a stray semicolon": {
			"GET", runs + "?text=a;project=pb", "", `parameter \"text\" contains a semicolon`},
		"a stray semicolon in a download": {
			"GET", export + "?format=csv;x", "", `parameter \"format\" contains a semicolon`},
		"a value that cannot be decoded": {"GET", runs + "?text=%zz", "", `value of parameter \"text\"`},
		"a name that cannot be decoded":  {"GET", runs + "?te%xt=a", "", `the name of parameter \"te%xt\"`},
		"a value that is not UTF-8":      {"GET", runs + "?text=%ff", "", `parameter \"text\" is not UTF-8`},
		"a path that is not UTF-8":       {"GET", "/v1/projects/p%e9/runs", "", `\"project\" of the path is not UTF-8`},
		"a text as a number": {
			"GET", runs + "?pageSize=ten", "", `parameter \"pageSize\" is \"ten\": give a whole number`},
		"a text as a truth": {
			"GET", runs + "/r1?unredacted=yes", "", `parameter \"unredacted\" is \"yes\": give true or false`},
		"an unknown parameter":               {"GET", runs + "?colour=red", "", `no parameter \"colour\"`},
		"an unknown parameter of a post":     {"POST", replay + "?colour=red", "{}", `no parameter \"colour\"`},
		"an unknown parameter of a download": {"GET", export + "?colour=red", "", `no parameter \"colour\"`},
		"a parameter twice": {
			"GET", runs + "?text=a&text=b", "", `parameter \"text\" is given more than once`},
		"a parameter in both spellings": {"GET", runs + "?pageSize=1&page_size=2", "", "is given more than once"},
		"a parameter that the body has": {
			"POST", replay + "?reason=a", `{"reason":"b"}`, `parameter \"reason\" is in the body as well`},
		"Connect's parameters": {
			"GET", runs + "?connect=v1&encoding=json&message={}", "", `no parameter \"connect\"`},
		"a message instead of its fields": {"GET", runs + "?filter={}", "", `no parameter \"filter\"`},
		"a dotted name":                   {"GET", runs + "?filter.text=a", "", `no parameter \"filter.text\"`},
		"a field of a message twice":      {"GET", export + "?parentRunId=a&parent_run_id=b", "", "is given more than once"},
		"a field of a message in a body": {
			"POST", "/v1/projects/pa/batches?statuses=failed", "{}", `no parameter \"statuses\"`},
		"a download with a body": {"GET", export, "{}", "this method takes no body"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t)
			w, got := s.do(t, test.verb, test.target, test.body)
			require.Nil(t, got)
			require.Equal(t, http.StatusBadRequest, w.Code, w.Body)
			require.Contains(t, w.Body.String(), test.says)
		})
	}
	s := newStack(t)
	for _, target := range []string{
		runs + "?statuses=failed&statuses=queued", runs + "?&text=a&", runs + "?text=a%3Bb", export + "?stuck=any"} {
		w, got := s.do(t, "GET", target, "")
		require.NotNil(t, got, w.Body)
	}
}

// The parameters of a query are the fields of the request and those of its filter.
func TestFieldsOfFilterAreParameters(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	want := &signalboxv1.RunFilter{
		Statuses: []string{"failed", "queued"}, Text: "a;b", NotReplayed: true, ParentRunId: "p1",
		Since: timestamppb.New(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)),
	}
	for _, path := range []string{"/runs", "/runs:count", "/runs:export"} {
		w, got := s.do(t, "GET", "/v1/projects/pa"+path+
			"?statuses=failed&text=a%3Bb&statuses=queued&notReplayed=true&parent_run_id=p1&since=2026-01-31T12%3A00%3A00Z", "")
		require.NotNil(t, got, w.Body)
		raw, err := proto.Marshal(got.message.Get(got.message.Descriptor().Fields().ByName("filter")).Message().Interface())
		require.NoError(t, err)
		filter := &signalboxv1.RunFilter{}
		require.NoError(t, proto.Unmarshal(raw, filter))
		require.True(t, proto.Equal(want, filter), "%s: %v", path, filter)
	}
}

func TestPathsAreDecodedOnce(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	for target, want := range map[string]string{
		"/v1/projects/pa/runs/a%252Fb":      "a%2Fb",
		"/v1/projects/pa/runs/a%2Fb":        "a/b",
		"/v1/projects/pa/runs/a%3Acancel":   "a:cancel",
		"/v1/projects/pa/runs/a%3Fid=other": "a?id=other",
		"/v1/projects/pa/runs/a+b%20c":      "a+b c",
	} {
		_, got := s.do(t, "GET", target, "")
		require.NotNil(t, got, target)
		require.Equal(t, want, got.message.Get(got.message.Descriptor().Fields().ByName("id")).String())
	}
	for target, want := range map[string]string{
		"demo%2Fhello": "demo/hello", "demo/hello": "demo/hello", "a%252Fb": "a%2Fb", "x%3Adiff": "x:diff"} {
		_, got := s.do(t, "GET", "/v1/projects/pa/workflows/"+target, "")
		require.NotNil(t, got, target)
		require.Equal(t, want, got.message.Get(got.message.Descriptor().Fields().ByName("workflow")).String())
	}
	_, got := s.do(t, "GET", "/v1/projects/pa%2Fruns", "")
	require.Nil(t, got, "an escaped slash separates nothing: there is no project of this name")
}
