package httpmessage_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/httpmessage"
)

func TestBodiesFollowTheirType(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ given, body, want, wantType string }{
		{"", `{"a":1}`, `{"a":1}`, "application/json"},
		{"text/plain", `"a b"`, "a b", "text/plain"},
		{"application/x-www-form-urlencoded", `{"a":[1,2],"b":null}`, "a=1&a=2", "application/x-www-form-urlencoded"},
	} {
		headers := http.Header{}
		httpmessage.SetDefault(headers, "Content-Type", tt.given)
		body, err := httpmessage.Body(json.RawMessage(tt.body), headers)
		require.NoError(t, err)
		sent, err := io.ReadAll(body)
		require.NoError(t, err)
		require.Equal(t, tt.want, string(sent))
		require.Equal(t, tt.wantType, headers.Get("Content-Type"))
	}
}

func TestContentFollowsItsType(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		raw                bool
		contentType, given string
		want               any
	}{
		{false, "application/json", `{"a":1}`, map[string]any{"a": 1}},
		{false, "text/plain", "a", "a"},
		{false, "application/octet-stream", "a", "YQ=="},
		{true, "application/json", "a", "YQ=="},
		{false, "application/json", "", nil},
	} {
		content, err := httpmessage.Content(tt.raw, tt.contentType, []byte(tt.given))
		require.NoError(t, err)
		require.Equal(t, tt.want, content)
	}
	_, err := httpmessage.Content(false, "application/json", []byte("a"))
	require.Error(t, err)
}

func TestStatusErrorsQuoteTheResponseWithoutSecrets(t *testing.T) {
	t.Parallel()
	scrub := func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }
	got := httpmessage.StatusError("GET", "https://u:p@shop.example/a?b=c", 409, "application/problem+json",
		[]byte(`{"title":"Taken","detail":"by\n hunter2"}`), scrub)
	require.Equal(t, dsl.Error{
		Type: dsl.ErrorTypeCommunication, Status: 409, Title: "Taken", Detail: "GET https://shop.example/a answered 409: by ***",
	}, got)
}

func TestRetryAfterCountsForOverloadedServices(t *testing.T) {
	t.Parallel()
	headers := http.Header{"Retry-After": {"30"}}
	require.Equal(t, 30*time.Second, httpmessage.RetryAfter(503, headers, time.Time{}, time.Minute))
	require.Equal(t, 10*time.Second, httpmessage.RetryAfter(429, headers, time.Time{}, 10*time.Second))
	require.Zero(t, httpmessage.RetryAfter(500, headers, time.Time{}, time.Minute))
}
