package workflowtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/dsl/httpmessage"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// Sender sends a request that no mock answers. It does not follow redirects.
type Sender func(*http.Request) (*http.Response, error)

// maxLive is the size of the largest response that is recorded.
const maxLive = 1 << 20

// hidden stands in a recorded response for the text of a secret.
const hidden = "FILL-IN"

// send sends a request that no mock answers, and records the response as a mock.
func (r *runner) send(ctx context.Context, name string, sent *http.Request) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, httpmessage.Timeout)
	defer cancel()
	got, err := r.c.Live(sent.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer func() { _ = got.Body.Close() }() // it was only read
	body, err := io.ReadAll(io.LimitReader(got.Body, maxLive+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxLive:
		return nil, fmt.Errorf("the response has more than %d bytes", maxLive)
	case !utf8.Valid(body):
		return nil, errors.New("the response is no text")
	}
	response := &Response{Status: got.StatusCode, Headers: map[string]string{}, HasBody: len(body) > 0}
	contentType := got.Header.Get("Content-Type")
	if value, err := jq.DecodeJSON(body); err == nil && strings.Contains(contentType, "json") {
		response.Body = value
	} else {
		response.Body = string(body)
		response.Headers["Content-Type"] = contentType
	}
	if after := got.Header.Get("Retry-After"); after != "" {
		response.Headers["Retry-After"] = after
	}
	r.result.Live = append(r.result.Live, Mock{Task: name, Respond: []Response{r.withoutSecrets(response)}})
	return response, nil
}

// withoutSecrets returns a response with a mark in the place of each secret of the case.
func (r *runner) withoutSecrets(response *Response) Response {
	var secrets []string
	var collect func(v any)
	collect = func(v any) {
		switch v := v.(type) {
		case string:
			if v != "" {
				secrets = append(secrets, v)
			}
		case map[string]any:
			for member := range maps.Values(v) {
				collect(member)
			}
		}
	}
	collect(r.c.Secrets)
	// The longest first: one secret may begin with another.
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, secret := range secrets {
		pairs = append(pairs, secret, hidden)
	}
	marks := strings.NewReplacer(pairs...)
	out := *response
	out.Body, out.Headers = replaceIn(marks, response.Body), replaceAll(marks, response.Headers)
	return out
}
