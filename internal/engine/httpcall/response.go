package httpcall

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/httpmessage"
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
	contentType := res.Header.Get("Content-Type")
	raw := r.Output == flow.OutputRaw
	if httpmessage.Scrubbable(raw, contentType) {
		body = s.Bytes(body) // before it becomes base64
	}
	content, err := httpmessage.Content(raw, contentType, body)
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
		out.Headers = scrubbed(s, httpmessage.Flatten(res.Header))
		out.Request = &flow.SentRequest{
			Method:  res.Request.Method,
			URI:     s.Text(res.Request.URL.Redacted()),
			Headers: scrubbed(s, sentHeaders(res.Request.Header, r.Headers)),
		}
	}
	return out, nil
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
	out := httpmessage.Sent(h)
	if !slices.ContainsFunc(slices.Collect(maps.Keys(given)), func(name string) bool {
		return strings.EqualFold(name, headerTraceparent)
	}) {
		delete(out, strings.ToLower(headerTraceparent))
	}
	return out
}
