package httpmessage

import (
	"bytes"
	"encoding/base64"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/backoff"
)

// Acceptable reports whether a status is a result, rather than an error. redirect is that of the call.
func Acceptable(status int, redirect bool) bool {
	if redirect {
		return status >= 200 && status <= 399
	}
	return status >= 200 && status <= 299
}

// Scrubbable reports whether secrets in a body must be replaced before Content converts it: those in the body of any
// other response are found in its content.
func Scrubbable(raw bool, contentType string) bool { return raw || !isJSON(mediaType(contentType)) }

// Content converts a body to the value for the workflow: the decoded JSON, a text, or base64 for other types and if raw
// is set. An empty body is nil. It fails for a body that is announced as JSON and is not.
func Content(raw bool, contentType string, body []byte) (any, error) {
	media := mediaType(contentType)
	if !raw && isJSON(media) {
		body = bytes.TrimPrefix(body, []byte("\ufeff")) // RFC 8259, 8.1 permits readers to ignore the byte order mark
	}
	switch {
	case len(body) == 0:
		return nil, nil //nolint:nilnil // null is the value of no body
	case raw:
		return base64.StdEncoding.EncodeToString(body), nil
	case isJSON(media):
		return jq.DecodeJSON(body)
	}
	if isText(media) {
		if text, ok := asText(contentType, body); ok {
			return text, nil
		}
	}
	return base64.StdEncoding.EncodeToString(body), nil
}

// isText reports whether a type is text. A body without a type is text if it can be decoded as such.
func isText(media string) bool {
	switch media {
	case "", "application/xml", "application/javascript", "application/yaml", "application/x-yaml", "application/toml",
		typeForm, "application/x-ndjson", "application/graphql", "application/sql":
		return true
	}
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+xml") || strings.HasSuffix(media, "+yaml")
}

// asText decodes a body in the character set of its type, UTF-8 by default. It returns false if the body is not text in
// it.
func asText(contentType string, body []byte) (string, bool) {
	_, params, _ := mime.ParseMediaType(contentType)
	charset := strings.ToLower(params["charset"])
	if charset == "" || charset == "utf-8" || charset == "utf8" || charset == "us-ascii" {
		return string(body), utf8.Valid(body)
	}
	encoding, err := htmlindex.Get(charset)
	if err != nil {
		return "", false
	}
	text, err := encoding.NewDecoder().Bytes(body)
	return string(text), err == nil && utf8.Valid(text)
}

// Flatten joins repeated headers according to RFC 9110. Names are in lower case, so that expressions can rely on it.
func Flatten(h http.Header) map[string]string {
	out := make(map[string]string, len(h))
	for name, values := range h {
		out[strings.ToLower(name)] = strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD")
	}
	return out
}

// Sent returns the headers of a request as the result of its call shows them: without credentials, because results are
// stored and shown.
func Sent(h http.Header) map[string]string {
	out := Flatten(h)
	for _, name := range []string{"authorization", "proxy-authorization", "cookie"} {
		delete(out, name)
	}
	return out
}

// Exchange is a request as it was sent and the response to it, as `output: response` shows them. Headers are flattened.
type Exchange struct {
	Method, URI   string
	Sent, Headers map[string]string
	Status        int
	Content       any
}

// Value returns the value of an exchange for the workflow.
func (e Exchange) Value() map[string]any {
	return map[string]any{
		"request":    map[string]any{"method": e.Method, "uri": e.URI, "headers": object(e.Sent)},
		"statusCode": e.Status,
		"headers":    object(e.Headers),
		"content":    e.Content,
	}
}

func object(headers map[string]string) map[string]any {
	out := make(map[string]any, len(headers))
	for name, value := range headers {
		out[name] = value
	}
	return out
}

// RetryAfter returns the delay before another request that an overloaded service asks for, up to a limit; 0: it asks for
// none.
func RetryAfter(status int, headers http.Header, now time.Time, longest time.Duration) time.Duration {
	if !slices.Contains([]int{http.StatusTooManyRequests, http.StatusServiceUnavailable}, status) {
		return 0
	}
	return backoff.RetryAfter(headers.Get("Retry-After"), now, longest)
}
