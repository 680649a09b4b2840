package httpcall

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// maxContentBytes bounds the content as JSON: base64 and escapes make it longer than the body.
const maxContentBytes = interp.MaxValueBytes

// errTooLarge reports a response over its limit.
var errTooLarge = errors.New("answer over the size limit")

// readBody reads up to limit bytes, counted after decompression.
func readBody(r io.Reader, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("%w of %d bytes", errTooLarge, limit)
	}
	return body, nil
}

// respond returns the result of an acceptable response, without the secrets that it may contain.
func respond(r flow.HTTPRequest, res *http.Response, body []byte, s *redact.Scrubber) (flow.HTTPResponse, error) {
	out := flow.HTTPResponse{StatusCode: res.StatusCode}
	contentType := res.Header.Get(headerContentType)
	if r.Output == flow.OutputRaw || !isJSON(mediaType(contentType)) {
		body = s.Bytes(body) // before it becomes base64
	}
	content, err := decode(r.Output, contentType, body)
	if err != nil {
		return out, notJSON(r, err)
	}
	if content != nil {
		content = s.Value(content)
		if out.Content, err = jq.EncodeJSON(content); err != nil {
			return out, notJSON(r, err)
		}
	}
	if len(out.Content) > maxContentBytes {
		return out, tooLarge(r, fmt.Errorf("%w of %d bytes as JSON", errTooLarge, maxContentBytes))
	}
	if r.Output == flow.OutputResponse {
		out.Headers = scrubbed(s, flatten(res.Header))
		out.Request = &flow.SentRequest{
			Method:  res.Request.Method,
			URI:     s.Text(res.Request.URL.Redacted()),
			Headers: scrubbed(s, sentHeaders(res.Request.Header, r.Headers)),
		}
	}
	return out, nil
}

// decode converts a body to the value for the workflow. An empty body is nil.
func decode(output, contentType string, body []byte) (any, error) {
	media := mediaType(contentType)
	if output != flow.OutputRaw && isJSON(media) {
		body = bytes.TrimPrefix(body, []byte("\ufeff")) // RFC 8259, 8.1 permits readers to ignore the byte order mark
	}
	switch {
	case len(body) == 0:
		return nil, nil //nolint:nilnil // null is the value of no body
	case output == flow.OutputRaw:
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

// flatten joins repeated headers according to RFC 9110. Names are in lower case, so that expressions can rely on it.
func flatten(h http.Header) map[string]string {
	out := make(map[string]string, len(h))
	for name, values := range h {
		out[strings.ToLower(name)] = strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD")
	}
	return out
}

func scrubbed(s *redact.Scrubber, headers map[string]string) map[string]string {
	out := make(map[string]string, len(headers))
	for name, value := range headers {
		out[s.Text(name)] = s.Text(value)
	}
	return out
}

// sentHeaders omits credentials: results are stored and shown. It omits a trace context that the workflow did not set:
// the result of a call does not depend on whether the call is traced.
func sentHeaders(h http.Header, given map[string]string) map[string]string {
	out := flatten(h)
	if !slices.ContainsFunc(slices.Collect(maps.Keys(given)), func(name string) bool {
		return strings.EqualFold(name, headerTraceparent)
	}) {
		delete(out, strings.ToLower(headerTraceparent))
	}
	for _, name := range []string{"authorization", "proxy-authorization", "cookie"} {
		delete(out, name)
	}
	return out
}

// problemDetail returns the title and detail of a response that is itself a problem description (RFC 9457).
func problemDetail(contentType string, body []byte) (title, detail string) {
	if mediaType(contentType) != "application/problem+json" {
		return "", ""
	}
	var p struct {
		Title  string `json:"title"`
		Detail string `json:"detail"`
	}
	if json.Unmarshal(body, &p) != nil {
		return "", ""
	}
	return p.Title, p.Detail
}
