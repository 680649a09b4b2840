package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/rpc/rest"
)

// FuzzREST sends requests to the whole server without a connection. For every request: nothing panics, the response is
// JSON with a reason, and the called method is that of the path, with the values of the path.
func FuzzREST(f *testing.F) {
	for _, seed := range [][4]string{
		{"GET", "/v1/version", "", ""},
		{"GET", "/v1/projects/default/runs?statuses=queued&pageSize=10", "", ""},
		{"GET", "/v1/projects/default/runs?text=a;b&project=other", "", ""},
		{"GET", "/v1/projects/default/runs/a%2Fb%3Acancel?unredacted=true", "X-Server-Timeout: -1", ""},
		{"GET", "/v1/projects/default/runs:export?format=csv", "Accept-Encoding: gzip", ""},
		{"POST", "/v1/projects/default/runs", "Content-Type: application/json",
			`{"workflow":"hello","input":{"name":"Ada"},"requestId":"r"}`},
		{"POST", "/v1/projects/default/runs?requestId=r", "Content-Type: application/json; charset=utf-8",
			`{"project":"other","workflow":"hello"}`},
		{"POST", "/v1/projects/default/runs/r:replay", "Content-Encoding: gzip", `{"patch":[]}`},
		{"PUT", "/v1/projects/default/quota", "Connect-Protocol-Version: 1\nContent-Type: application/json",
			`{"quota":{"steps":1}}`},
		{"DELETE", "/v1/projects/default/workflows/demo/hello?workflow=demo/other", "", ""},
		{"GET", "/v1/projects/default/workflows/demo/hello:diff?from=1.0.0&to=draft", "", ""},
		{"POST", "/v1/projects/default/events", "Content-Type: application/cloudevents+json",
			`{"specversion":"1.0","id":"1","source":"/s","type":"t"}`},
		{"POST", "/v1/projects/default/events", "Ce-Specversion: 1.0\nCe-Id: 1\nCe-Source: /s\nCe-Type: t", `x`},
		{"GET", "/v1/projects/default/events:find?source=s&id=%00", "", ""},
		{"POST", "/signalbox.v1.RunService/GetRun", "Content-Type: application/json", `{"id":"x"}`},
		{"OPTIONS", "/v1/projects//runs/../x", "Origin: null", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	seen := &recorder{}
	p := start(f, func(o *rpc.Options) {
		o.Interceptors = []connect.Interceptor{seen}
		o.Events, o.EventLimits = newFakeEvents(), event.DefaultLimits()
	})
	p.publish()
	handler := p.server.Handler()
	table, err := rest.NewTable("/"+signalboxv1connect.RunServiceName+"/", "/"+signalboxv1connect.WorkflowServiceName+"/",
		"/"+signalboxv1connect.ProjectServiceName+"/", "/"+signalboxv1connect.AuditServiceName+"/",
		"/"+signalboxv1connect.SystemServiceName+"/", "/"+signalboxv1connect.EventServiceName+"/")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, verb, target, headers, body string) {
		r := requestOf(t.Context(), verb, target, headers, body)
		if r == nil {
			return
		}
		escaped := r.URL.EscapedPath()
		match, matched := table.Match(r.Method, escaped)
		seen.calls = nil
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError && !strings.Contains(w.Body.String(), "DEADLINE_EXCEEDED") &&
			!strings.Contains(w.Body.String(), "UNIMPLEMENTED") {
			t.Fatalf("%s %s answers %d: %s\n%s", verb, target, w.Code, w.Body, p.log)
		}
		if strings.HasPrefix(escaped, "/v1/") {
			if problem := problemOf(w); problem != "" {
				t.Fatalf("%s %s: %s: %d %v %q", verb, target, problem, w.Code, w.Header(), w.Body)
			}
			seen.check(t, r.Method, escaped, match, matched)
		}
	})
}

// requestOf builds a request; nil if no client or listener would accept it.
func requestOf(ctx context.Context, verb, target, headers, body string) *http.Request {
	u, err := url.ParseRequestURI(target)
	if err != nil || !strings.HasPrefix(target, "/") {
		return nil
	}
	r, err := http.NewRequestWithContext(ctx, verb, "http://localhost", strings.NewReader(body))
	if err != nil || verb == "" {
		return nil
	}
	r.URL, r.RequestURI, r.RemoteAddr = u, target, "127.0.0.1:1"
	for line := range strings.SplitSeq(headers, "\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.ContainsAny(name, " \t\r") {
			continue
		}
		r.Header.Add(name, strings.TrimSpace(value))
	}
	return r
}

// problemOf returns an error in the form of a REST response; empty if there is none.
func problemOf(w *httptest.ResponseRecorder) string {
	kind := w.Header().Get("Content-Type")
	switch {
	case w.Code >= 300 && w.Code < 400: // to the same path without empty or dotted segments
		return ""
	case w.Code < 300 && (!strings.HasPrefix(kind, "application/json") || w.Header().Get("Content-Encoding") != ""):
		return "" // a download, or compressed
	case !json.Valid(w.Body.Bytes()):
		return "the answer is no JSON"
	case w.Code < 300:
		return ""
	}
	var e struct {
		Code    int
		Message string
		Details []struct{ Reason string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Code == 0 || e.Message == "" || len(e.Details) == 0 ||
		e.Details[0].Reason == "" {
		return "the error has no code, message or reason"
	}
	return ""
}

// recorder records the calls that reach a method. One request is sent at a time.
type recorder struct {
	calls []recorded
}

type recorded struct {
	procedure string
	message   protoreflect.Message
}

func (c *recorder) see(procedure string, message any) {
	if m, ok := message.(proto.Message); ok {
		c.calls = append(c.calls, recorded{procedure, m.ProtoReflect()})
	}
}

// WrapUnary implements [connect.Interceptor].
func (c *recorder) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		c.see(req.Spec().Procedure, req.Any())
		return next(ctx, req)
	}
}

// WrapStreamingHandler implements [connect.Interceptor].
func (c *recorder) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return next(ctx, &recordingConn{conn, c})
	}
}

// WrapStreamingClient implements [connect.Interceptor].
func (c *recorder) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

type recordingConn struct {
	connect.StreamingHandlerConn

	recorder *recorder
}

func (c *recordingConn) Receive(m any) error {
	err := c.StreamingHandlerConn.Receive(m)
	if err == nil {
		c.recorder.see(c.Spec().Procedure, m)
	}
	return err
}

// check compares the calls with the path of the request.
func (c *recorder) check(t *testing.T, verb, path string, match rest.Match, matched bool) {
	t.Helper()
	for _, call := range c.calls {
		if call.procedure == signalboxv1connect.EventServicePublishEventsProcedure {
			project, err := url.PathUnescape(strings.Split(path, "/")[3])
			if got := call.message.Get(call.message.Descriptor().Fields().ByName("project")).String(); err != nil ||
				got != project {
				t.Fatalf("%s %s publishes in %q", verb, path, got)
			}
			continue
		}
		if !matched || call.procedure != fmt.Sprintf("/%s/%s", match.Method.Parent().FullName(), match.Method.Name()) {
			t.Fatalf("%s %s calls %s", verb, path, call.procedure)
		}
		for _, v := range match.Variables {
			if got := call.message.Get(v.Field).String(); got != v.Value && v.Field.Kind() == protoreflect.StringKind {
				t.Fatalf("%s %s calls %s with %s %q instead of %q", verb, path, call.procedure, v.Field.Name(), got, v.Value)
			}
		}
	}
	if len(c.calls) > 1 {
		t.Fatalf("%s %s makes %d calls", verb, path, len(c.calls))
	}
}
