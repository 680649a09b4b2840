package rpc_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
)

// connectFails expects an error in Connect's JSON and returns its line.
func (a answer) connectFails(status int, code, reason string) string {
	a.t.Helper()
	require.Equal(a.t, status, a.status, a.body)
	require.Equal(a.t, "application/json", a.header.Get("Content-Type"))
	var e struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Details []struct {
			Type  string `json:"type"`
			Value string `json:"value"`
		} `json:"details"`
	}
	require.NoError(a.t, json.Unmarshal([]byte(a.body), &e), a.body)
	require.Equal(a.t, code, e.Code)
	require.NotEmpty(a.t, e.Details, a.body)
	require.Equal(a.t, "google.rpc.ErrorInfo", e.Details[0].Type)
	raw, err := base64.RawStdEncoding.DecodeString(e.Details[0].Value)
	require.NoError(a.t, err)
	var info errdetails.ErrorInfo
	require.NoError(a.t, proto.Unmarshal(raw, &info))
	require.Equal(a.t, reason, info.GetReason())
	require.Equal(a.t, "signalbox", info.GetDomain())
	return e.Message
}

func TestConnectErrors(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	const create, getRun = "/signalbox.v1.ProjectService/CreateProject", "/signalbox.v1.RunService/GetRun"
	tests := map[string]struct {
		method, path, body string
		headers            []string
		status             int
		code, reason, says string
	}{
		"malformed": {"POST", create, `{"name"`, nil, 400, "invalid_argument", apperror.InvalidArgument,
			"request body: "},
		"empty": {"POST", create, ` `, nil, 400, "invalid_argument", apperror.InvalidArgument, "the body is empty"},
		"unknown field": {"POST", create, `{"nmae":"a"}`, nil, 400, "invalid_argument", apperror.InvalidArgument,
			`unknown field "nmae"`},
		"charset": {"POST", create, `{"nmae":"a"}`, []string{"Content-Type", "application/json; charset=utf-8"}, 400,
			"invalid_argument", apperror.InvalidArgument, `unknown field "nmae"`},
		"binary garbage": {"POST", create, "\xff\xff", []string{"Content-Type", "application/proto"}, 400, "invalid_argument",
			apperror.InvalidArgument, "request body: "},
		"form": {"POST", create, `name=a`, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415,
			"invalid_argument", apperror.InvalidArgument, "application/json"},
		"encoding": {"POST", create, `{}`, []string{"Content-Encoding", "br"}, 501, "unimplemented", "UNIMPLEMENTED", "br"},
		"method":   {"PUT", create, `{}`, nil, 405, "unimplemented", "UNIMPLEMENTED", "PUT"},
		"timeout": {"POST", create, `{}`, []string{"Connect-Timeout-Ms", "soon"}, 400, "invalid_argument",
			apperror.InvalidArgument, "soon"},
		"fault": {"POST", getRun, `{"id":"none"}`, nil, 404, "not_found", apperror.RunNotFound, "none"},
		"no id": {"POST", getRun, `{}`, nil, 400, "invalid_argument", apperror.InvalidArgument, "id"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := p.do(test.method, test.path, test.body, test.headers...)
			a.t = t
			require.Contains(t, a.connectFails(test.status, test.code, test.reason), test.says)
		})
	}
	p.do("POST", "/signalbox.v1.RunService/Explode", `{}`).connectFails(404, "unimplemented", "UNIMPLEMENTED")
}

func TestConnectClientsInEveryEncoding(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	const input = `{"name":"Ada","n":12345678901234567890}`
	options := map[string][]connect.ClientOption{
		"binary":   nil,
		"JSON":     {connect.WithCodec(jsoncodec.NewConnect(jsoncodec.Name))},
		"gRPC-Web": {connect.WithGRPCWeb()},
		"gzip":     {connect.WithSendGzip()},
		"GET":      {connect.WithHTTPGet()},
	}
	for name, opts := range options {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := signalboxv1connect.NewRunServiceClient(p.client, p.base, opts...)
			started, err := client.StartRun(t.Context(), connect.NewRequest(&signalboxv1.StartRunRequest{
				Workflow: "hello", Input: &signalboxv1.JsonValue{Json: input},
			}))
			require.NoError(t, err)
			got, err := client.GetRun(t.Context(),
				connect.NewRequest(&signalboxv1.GetRunRequest{Id: started.Msg.GetRun().GetId()}))
			require.NoError(t, err)
			require.Equal(t, input, got.Msg.GetRun().GetInput().GetJson())
			require.Equal(t, "default", got.Msg.GetRun().GetProject(), "an empty project is the default one")

			_, err = client.GetRun(t.Context(), connect.NewRequest(&signalboxv1.GetRunRequest{Id: "none"}))
			requireReason(t, err, connect.CodeNotFound, apperror.RunNotFound)
		})
	}
}

func TestConnectGetWithoutBody(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	query := url.Values{"connect": {"v1"}, "encoding": {"json"}, "message": {`{"name":"default"}`}}
	got := p.do("GET", "/signalbox.v1.ProjectService/GetProject?"+query.Encode(), "").ok()
	require.Equal(t, "default", got["project"].(map[string]any)["name"])
}

func requireReason(t *testing.T, err error, code connect.Code, reason string) {
	t.Helper()
	require.Equal(t, code, connect.CodeOf(err), "%v", err)
	var ce *connect.Error
	require.ErrorAs(t, err, &ce)
	require.NotEmpty(t, ce.Details(), "%v", err)
	detail, valueErr := ce.Details()[0].Value()
	require.NoError(t, valueErr)
	info, ok := detail.(*errdetails.ErrorInfo)
	require.True(t, ok, "%T", detail)
	require.Equal(t, reason, info.GetReason())
}

func TestGRPCWebErrorsBeforeAnyMethod(t *testing.T) {
	t.Parallel()
	p := start(t, func(o *rpc.Options) { o.MaxRequestBytes = 1000 })
	client := signalboxv1connect.NewProjectServiceClient(p.client, p.base, connect.WithGRPCWeb())
	_, err := client.CreateProject(t.Context(),
		connect.NewRequest(&signalboxv1.CreateProjectRequest{Name: strings.Repeat("x", 2000)}))
	require.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err), "%v", err)
}

func TestInterceptorsSeeTheFinalError(t *testing.T) {
	t.Parallel()
	codes := make(chan connect.Code, 1)
	p := start(t, func(o *rpc.Options) {
		o.Interceptors = []connect.Interceptor{connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
			return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
				res, err := next(ctx, req)
				codes <- connect.CodeOf(err)
				return res, err
			}
		})}
	})
	p.do("GET", "/v1/projects/default/runs/none", "").fails(404, apperror.RunNotFound)
	require.Equal(t, connect.CodeNotFound, <-codes)
	p.do("POST", "/signalbox.v1.RunService/GetRun", `{"id":"none"}`).connectFails(404, "not_found", apperror.RunNotFound)
	require.Equal(t, connect.CodeNotFound, <-codes)
}
