package httpcall_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newCaller returns a caller that may call this machine, on which the tests' origins listen.
func newCaller(t *testing.T) *httpcall.Caller {
	t.Helper()
	c := httpcall.New(httpcall.Options{AllowPrivate: loopback(), UserAgent: "signalbox/test"})
	t.Cleanup(c.Close)
	return c
}

func loopback() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

func origin(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// get returns a request as the interpreter makes it, without the parts under test.
func get(url string) flow.HTTPRequest {
	return flow.HTTPRequest{
		Method: http.MethodGet, URL: url, Output: flow.OutputContent,
		Timeout: 10 * time.Second, MaxResponseBytes: 1 << 16, Local: true,
	}
}

func TestAttemptsHaveTheDelayThatTheServiceAsksFor(t *testing.T) {
	c := httpcall.New(httpcall.Options{AllowPrivate: loopback(), MaxRetryAfter: time.Minute})
	t.Cleanup(c.Close)
	for name, tc := range map[string]struct {
		status int
		header string
		want   time.Duration
	}{
		"unavailable":      {503, "7", 7 * time.Second},
		"overloaded":       {429, "7", 7 * time.Second},
		"over a limit":     {429, "3600", time.Minute},
		"in the past":      {503, "Sun, 01 Mar 2020 12:00:30 GMT", 0},
		"far date":         {503, "Sun, 01 Mar 2099 12:00:30 GMT", time.Minute},
		"none":             {503, "", 0},
		"not a number":     {503, "soon", 0},
		"other status":     {500, "7", 0},
		"another resource": {301, "7", 0},
	} {
		url := origin(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", tc.header)
			w.WriteHeader(tc.status)
		})
		_, err := c.Call(t.Context(), get(url))
		attempts := failureOf(t, err).Attempts
		require.Len(t, attempts, 1, name)
		require.Equal(t, tc.want, attempts[0].RetryAfter, name)
	}
}

func failureOf(t *testing.T, err error) flow.CallFailure {
	t.Helper()
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.True(t, app.NonRetryable(), "Temporal must never repeat a call")
	var f flow.CallFailure
	require.NoError(t, app.Details(&f))
	require.Equal(t, f.Error.Type, app.Type())
	return f
}

func TestRequestsAreSent(t *testing.T) { //nolint:tparallel // the cases share the received request
	t.Parallel()
	type sent struct {
		Method, URI, Host, Body string
		Header                  http.Header
	}
	var got sent
	url := origin(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = sent{r.Method, r.RequestURI, r.Host, string(body), r.Header}
	})

	for _, tc := range []struct {
		name   string
		change func(*flow.HTTPRequest)
		check  func(*testing.T)
	}{
		{"defaults", func(*flow.HTTPRequest) {}, func(t *testing.T) {
			require.Equal(t, "GET", got.Method)
			require.Equal(t, "signalbox/test", got.Header.Get("User-Agent"))
			require.Contains(t, got.Header.Get("Accept"), "application/json")
			require.Empty(t, got.Header.Get("Content-Type"))
			require.Empty(t, got.Header.Get("Idempotency-Key"))
		}},
		{"query is added to what the URL has", func(r *flow.HTTPRequest) {
			r.URL += "/a?x=1#part"
			r.Query = map[string]string{"b": "2 3", "a": "ü&"}
		}, func(t *testing.T) { require.Equal(t, "/a?x=1&a=%C3%BC%26&b=2+3", got.URI) }},
		{"JSON body keeps every digit", func(r *flow.HTTPRequest) {
			r.Method, r.Body = http.MethodPost, json.RawMessage(`{"n":12345678901234567890123}`)
			r.IdempotencyKey = "run-1/3/1"
		}, func(t *testing.T) {
			require.JSONEq(t, `{"n":12345678901234567890123}`, got.Body)
			require.Contains(t, got.Body, "12345678901234567890123")
			require.Equal(t, "application/json", got.Header.Get("Content-Type"))
			require.Equal(t, "run-1/3/1", got.Header.Get("Idempotency-Key"))
		}},
		{"a string is JSON by default", func(r *flow.HTTPRequest) {
			r.Method, r.Body = http.MethodPut, json.RawMessage(`"a\nb"`)
		}, func(t *testing.T) { require.Equal(t, `"a\nb"`, got.Body) }},
		{"a string is text where the type says so", func(r *flow.HTTPRequest) {
			r.Method, r.Body = http.MethodPut, json.RawMessage(`"a\nb"`)
			r.Headers = map[string]string{"content-type": "text/plain"}
		}, func(t *testing.T) { require.Equal(t, "a\nb", got.Body) }},
		{"an object is a form where the type says so", func(r *flow.HTTPRequest) {
			r.Method = http.MethodPost
			r.Body = json.RawMessage(`{"b":"x & y","a":12345678901234567890123,"t":true,"none":null,"list":[1,"z"]}`)
			r.Headers = map[string]string{"content-type": "application/x-www-form-urlencoded"}
		}, func(t *testing.T) {
			require.Equal(t, "a=12345678901234567890123&b=x+%26+y&list=1&list=z&t=true", got.Body)
			require.Equal(t, "application/x-www-form-urlencoded", got.Header.Get("Content-Type"))
		}},
		{"a string is a form as it is", func(r *flow.HTTPRequest) {
			r.Method, r.Body = http.MethodPost, json.RawMessage(`"a=1&b"`)
			r.Headers = map[string]string{"content-type": "application/x-www-form-urlencoded"}
		}, func(t *testing.T) { require.Equal(t, "a=1&b", got.Body) }},
		{"a string stays JSON for types of JSON", func(r *flow.HTTPRequest) {
			r.Method, r.Body = http.MethodPut, json.RawMessage(`"a"`)
			r.Headers = map[string]string{"Content-Type": "application/merge-patch+json; charset=utf-8"}
		}, func(t *testing.T) { require.Equal(t, `"a"`, got.Body) }},
		{"headers of the workflow come first", func(r *flow.HTTPRequest) {
			r.Method, r.IdempotencyKey = "PATCH", "ours"
			r.Headers = map[string]string{
				"user-agent": "mine", "accept": "text/csv", "idempotency-key": "theirs", "host": "shop.test", "X-A": "1"}
		}, func(t *testing.T) {
			require.Equal(t, "PATCH", got.Method)
			require.Equal(t, "shop.test", got.Host)
			require.Equal(t, []string{"mine", "text/csv", "theirs", "1"}, []string{
				got.Header.Get("User-Agent"), got.Header.Get("Accept"), got.Header.Get("Idempotency-Key"), got.Header.Get("X-A"),
			})
		}},
		{"no key with safe methods", func(r *flow.HTTPRequest) { r.Method, r.IdempotencyKey = http.MethodHead, "k" },
			func(t *testing.T) { require.Empty(t, got.Header.Get("Idempotency-Key")) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := get(url)
			tc.change(&r)
			_, err := newCaller(t).Call(t.Context(), r)
			require.NoError(t, err)
			tc.check(t)
		})
	}
}

func TestResponsesAreDecoded(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, contentType, body, output, want string
	}{
		{"JSON", "application/json; charset=utf-8", `{"b":1,"a":12345678901234567890}`, flow.OutputContent,
			`{"a":12345678901234567890,"b":1}`},
		{"JSON with a byte order mark", "application/json", "\ufeff{\"a\":1}", flow.OutputContent, `{"a":1}`},
		{"nothing but a byte order mark", "application/json", "\ufeff", flow.OutputContent, ""},
		{"JSON by suffix", "application/hal+json", `[1.50,true,null]`, flow.OutputContent, `[1.5,true,null]`},
		{"text", "text/plain", "a \"b\"\n", flow.OutputContent, `"a \"b\"\n"`},
		{"text in another character set", "text/plain; charset=ISO-8859-1", "gr\xfc\xdfe", flow.OutputContent, `"grüße"`},
		{"invalid text", "text/plain", "\xff\xfe", flow.OutputContent, `"//4="`},
		{"unknown character set", "text/plain; charset=klingon", "abc", flow.OutputContent, `"YWJj"`},
		{"XML", "application/atom+xml", "<a/>", flow.OutputContent, `"<a/>"`},
		{"binary", "image/png", "\x89PNG", flow.OutputContent, `"iVBORw=="`},
		{"no type, text", "", "plain", flow.OutputContent, `"plain"`},
		{"no type, binary", "", "\xff\x00", flow.OutputContent, `"/wA="`},
		{"raw", "application/json", `{}`, flow.OutputRaw, `"e30="`},
		{"empty", "application/json", "", flow.OutputContent, ""},
		{"empty raw", "image/png", "", flow.OutputRaw, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			url := origin(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = nil // no sniffing
				if tc.contentType != "" {
					w.Header().Set("Content-Type", tc.contentType)
				}
				_, _ = io.WriteString(w, tc.body)
			})
			r := get(url)
			r.Output = tc.output
			res, err := newCaller(t).Call(t.Context(), r)
			require.NoError(t, err)
			require.Equal(t, tc.want, string(res.Content))
			require.Equal(t, http.StatusOK, res.StatusCode)
			require.Nil(t, res.Headers, "headers are for the output `response` only")
			require.Nil(t, res.Request)
		})
	}
}

func TestOutputResponse(t *testing.T) {
	t.Parallel()
	url := origin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("X-Many", "a")
		w.Header().Add("X-Many", "b")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":1}`)
	})
	r := get(url + "/pets")
	r.Method, r.Output, r.Body = http.MethodPost, flow.OutputResponse, json.RawMessage(`{}`)
	r.Headers = map[string]string{"Authorization": "Bearer planted-secret", "X-Mine": "1"}
	res, err := newCaller(t).Call(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, res.StatusCode)
	require.Equal(t, "a, b", res.Headers["x-many"])
	require.JSONEq(t, `{"id":1}`, string(res.Content))
	require.Equal(t, "POST", res.Request.Method)
	require.Equal(t, url+"/pets", res.Request.URI)
	require.Equal(t, "1", res.Request.Headers["x-mine"])
	require.NotContains(t, fmt.Sprint(res.Request.Headers), "planted-secret")
}

func TestErrorResponses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 4000)
	for _, tc := range []struct {
		name, contentType, body string
		status                  int
		redirect                bool
		title, detail           string
	}{
		{"not found", "text/plain", "no\n\tsuch pet", 404, false, "Not Found", "answered 404: no such pet"},
		{"problem description", "application/problem+json", `{"title":"Out of stock","detail":"3 left"}`, 409, false,
			"Out of stock", "answered 409: 3 left"},
		{"JSON", "application/json", `{"e":1}`, 500, false, "Internal Server Error", `answered 500: {"e":1}`},
		{"binary is not shown", "image/png", "\x89PNG", 503, false, "Service Unavailable", "answered 503"},
		{"unknown status", "text/plain", "", 599, false, "HTTP status 599", "answered 599"},
		{"long text is cut", "text/plain", long, 400, false, "Bad Request", "é…"},
		{"redirection", "", "", 304, false, "Not Modified", "answered 304"},
		{"beyond redirections", "", "", 400, true, "Bad Request", "answered 400"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			url := origin(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.contentType)
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			})
			r := get(url + "/pets?key=planted-secret")
			r.Redirect = tc.redirect
			_, err := newCaller(t).Call(t.Context(), r)
			f := failureOf(t, err)
			require.Equal(t, flow.CategoryAnswered, f.Category)
			require.Equal(t, dsl.ErrorTypeCommunication, f.Error.Type)
			require.Equal(t, tc.status, f.Error.Status)
			require.Equal(t, tc.title, f.Error.Title)
			require.True(t, strings.HasSuffix(f.Error.Detail, tc.detail), f.Error.Detail)
			require.LessOrEqual(t, len(f.Error.Detail), 1024)
			require.Contains(t, f.Error.Detail, "GET "+url+"/pets")
			require.NotContains(t, err.Error(), "planted-secret")
		})
	}
}

func TestInvalidJSONResponse(t *testing.T) {
	t.Parallel()
	url := origin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "<html>")
	})
	_, err := newCaller(t).Call(t.Context(), get(url))
	f := failureOf(t, err)
	require.Equal(t, flow.CategoryAnswered, f.Category)
	require.Equal(t, http.StatusBadGateway, f.Error.Status)
	require.Equal(t, "Invalid response", f.Error.Title)
}

func TestInvalidRequests(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*flow.HTTPRequest)
		detail string
	}{
		"scheme":      {func(r *flow.HTTPRequest) { r.URL = "file:///etc/passwd" }, `scheme "file"`},
		"relative":    {func(r *flow.HTTPRequest) { r.URL = "/pets" }, "only http and https"},
		"no host":     {func(r *flow.HTTPRequest) { r.URL = "http:///pets" }, "names no host"},
		"unreadable":  {func(r *flow.HTTPRequest) { r.URL = "http://a b/?planted-secret" }, "cannot be read"},
		"method":      {func(r *flow.HTTPRequest) { r.Method = "GE T" }, "invalid method"},
		"header name": {func(r *flow.HTTPRequest) { r.Headers = map[string]string{"a b": "c"} }, `"a b" is not the name`},
		"header value": {func(r *flow.HTTPRequest) {
			r.Headers = map[string]string{"a": "b\r\nc: d"}
		}, `header "a" has a value`},
		"connection header": {
			func(r *flow.HTTPRequest) { r.Headers = map[string]string{"transfer-encoding": "chunked"} },
			"belongs to the connection",
		},
		"form of an object": {func(r *flow.HTTPRequest) {
			r.Body = json.RawMessage(`{"a":{"b":1}}`)
			r.Headers = map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
		}, `the field "a" of a form must be a text, a number, a boolean or a list of them`},
		"form of a list": {func(r *flow.HTTPRequest) {
			r.Body = json.RawMessage(`[1]`)
			r.Headers = map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
		}, `a body of the type application/x-www-form-urlencoded must be an object or a text`},
		"multipart": {func(r *flow.HTTPRequest) {
			r.Body = json.RawMessage(`{"a":1}`)
			r.Headers = map[string]string{"Content-Type": "multipart/form-data"}
		}, `a body of the type multipart/form-data must be a text`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := get("http://127.0.0.1:9/")
			tc.change(&r)
			_, err := newCaller(t).Call(t.Context(), r)
			f := failureOf(t, err)
			require.Equal(t, flow.CategoryRefused, f.Category)
			require.Equal(t, dsl.ErrorTypeConfiguration, f.Error.Type)
			require.Equal(t, http.StatusBadRequest, f.Error.Status)
			require.Contains(t, f.Error.Detail, tc.detail)
			require.NotContains(t, err.Error(), "planted-secret")
		})
	}
}

func TestTransportFailures(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	plain := origin(t, func(http.ResponseWriter, *http.Request) {})
	cut := origin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "short")
	})
	for _, tc := range []struct {
		name, url, title string
		status           int
	}{
		{"refused", "http://" + closed.Addr().String(), "Not reachable", 503},
		{"no such name", "http://no..name/", "Name not resolved", 503},
		{"unknown authority", secure.URL, "TLS failed", 502},
		{"no TLS there", strings.Replace(plain, "http:", "https:", 1), "No valid answer", 502},
		{"cut off", cut, "No valid answer", 502},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := newCaller(t).Call(t.Context(), get(tc.url+"?q=planted-secret"))
			f := failureOf(t, err)
			require.Equal(t, flow.CategoryTransport, f.Category)
			require.Equal(t, dsl.ErrorTypeCommunication, f.Error.Type)
			require.Equal(t, tc.title, f.Error.Title, f.Error.Detail)
			require.Equal(t, tc.status, f.Error.Status)
			require.NotContains(t, err.Error(), "planted-secret")
		})
	}
}

func TestTimeLimitCoversTheBody(t *testing.T) {
	t.Parallel()
	url := origin(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	r := get(url)
	r.Timeout = 50 * time.Millisecond
	_, err := newCaller(t).Call(t.Context(), r)
	f := failureOf(t, err)
	require.Equal(t, flow.CategoryTransport, f.Category)
	require.Equal(t, http.StatusGatewayTimeout, f.Error.Status)
	require.Contains(t, f.Error.Detail, "no complete answer within 50ms")
}

func TestCancellationLosesTheResult(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	url := origin(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	_, err := newCaller(t).Call(ctx, get(url))
	requireInterrupted(t, err)
	require.ErrorContains(t, err, context.Canceled.Error())
}

func TestSizeLimit(t *testing.T) {
	t.Parallel()
	compressed := origin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "text/plain")
		z := gzip.NewWriter(w)
		_, _ = z.Write(make([]byte, 10<<20))
		_ = z.Close()
	})
	escaped := origin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write(make([]byte, 3<<20)) // six bytes each as JSON
	})
	exact := origin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, strings.Repeat("a", 1000))
	})
	for _, tc := range []struct {
		name, url string
		limit     int64
		fits      bool
	}{
		{"counted after decompression", compressed, 1 << 20, false},
		{"counted as JSON too", escaped, 3 << 20, false},
		{"at the limit", exact, 1000, true},
		{"one over", exact, 999, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := get(tc.url)
			r.MaxResponseBytes = tc.limit
			_, err := newCaller(t).Call(t.Context(), r)
			if tc.fits {
				require.NoError(t, err)
				return
			}
			f := failureOf(t, err)
			require.Equal(t, flow.CategoryTooLarge, f.Category)
			require.Equal(t, http.StatusBadGateway, f.Error.Status)
		})
	}
}

func TestLongCallsHeartbeat(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	url := origin(t, func(http.ResponseWriter, *http.Request) { <-release })
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	env.RegisterActivityWithOptions(newCaller(t).Call, activity.RegisterOptions{Name: flow.HTTPActivity})
	var beats atomic.Int32
	env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) {
		if beats.Add(1) == 2 {
			close(release)
		}
	})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Minute,
			HeartbeatTimeout:    300 * time.Millisecond,
		})
		r := get(url)
		r.Local = false
		return workflow.ExecuteActivity(ctx, flow.HTTPActivity, r).Get(ctx, nil)
	})
	require.NoError(t, env.GetWorkflowError())
	require.GreaterOrEqual(t, beats.Load(), int32(2))
}
