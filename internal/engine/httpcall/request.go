package httpcall

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

const (
	headerAccept         = "Accept"
	headerContentType    = "Content-Type"
	headerIdempotencyKey = "Idempotency-Key"
	headerUserAgent      = "User-Agent"
	typeJSON             = "application/json"
	typeForm             = "application/x-www-form-urlencoded"
)

// build returns the request to send. Its errors mean that nothing can be sent.
func (c *Caller) build(ctx context.Context, r *resolvedRequest) (*http.Request, error) {
	target, err := targetURL(r.HTTPRequest)
	switch {
	case err != nil && r.secretURL:
		return nil, errors.New("its URL, which contains a secret, cannot be used: it has to begin with http:// or https:// " +
			"and a host")
	case err != nil:
		return nil, err
	}
	headers, host, err := requestHeaders(r.Headers)
	if err != nil {
		return nil, err
	}
	body, err := requestBody(r.Body, headers)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, target.String(), body)
	if err != nil {
		return nil, err
	}
	if host != "" {
		req.Host = host
	}
	req.Header = headers
	setDefault(headers, headerAccept, typeJSON+", */*;q=0.5")
	setDefault(headers, headerUserAgent, c.userAgent)
	if !safe(r.Method) {
		setDefault(headers, headerIdempotencyKey, r.IdempotencyKey)
	}
	return req, nil
}

// safe reports whether a method is safe (RFC 9110, 9.2.1).
func safe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

func targetURL(r flow.HTTPRequest) (*url.URL, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the whole URL, which may hold secrets
		}
		return nil, fmt.Errorf("its URL cannot be read: %w", err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("its URL has the scheme %q; only http and https can be called",
			apperror.Excerpt(u.Scheme, maxQuoted))
	case u.Hostname() == "":
		return nil, errors.New("its URL names no host")
	}
	if len(r.Query) > 0 {
		added := make(url.Values, len(r.Query))
		for name, value := range r.Query {
			added.Set(name, value)
		}
		if u.RawQuery != "" {
			u.RawQuery += "&"
		}
		u.RawQuery += added.Encode()
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// requestHeaders checks and copies the workflow's headers. It returns Host separately, as net/http requires.
func requestHeaders(given map[string]string) (http.Header, string, error) {
	headers, host := make(http.Header, len(given)+4), ""
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		if !httpguts.ValidHeaderFieldName(name) {
			return nil, "", fmt.Errorf("%q is not the name of a header", apperror.Excerpt(name, maxQuoted))
		}
		if !httpguts.ValidHeaderFieldValue(value) {
			return nil, "", fmt.Errorf("the header %q has a value with characters that headers cannot carry", name)
		}
		switch canonical := http.CanonicalHeaderKey(name); canonical {
		case "Host":
			host = value
		case "Connection", "Content-Length", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
			return nil, "", fmt.Errorf("the header %q belongs to the connection and cannot be set by a workflow", name)
		default:
			headers.Set(canonical, value)
		}
	}
	return headers, host, nil
}

// requestBody returns JSON. If Content-Type names a type other than JSON, it returns the text of a JSON string, and a
// form of an object.
func requestBody(value json.RawMessage, headers http.Header) (io.Reader, error) {
	if len(value) == 0 {
		return http.NoBody, nil
	}
	contentType := headers.Get(headerContentType)
	media := mediaType(contentType)
	switch {
	case contentType == "" || isJSON(media):
	case value[0] == '"':
		var text string
		if err := json.Unmarshal(value, &text); err != nil {
			return nil, fmt.Errorf("the body is not valid JSON: %w", err)
		}
		return strings.NewReader(text), nil
	case media == typeForm:
		form, err := formBody(value)
		return strings.NewReader(form), err
	case strings.HasPrefix(media, "multipart/"):
		return nil, fmt.Errorf("a body of the type %s must be a text; an object can be sent as %s or as JSON",
			apperror.Excerpt(media, maxQuoted), typeForm)
	}
	setDefault(headers, headerContentType, typeJSON)
	return bytes.NewReader(value), nil
}

// formBody encodes the members of an object as a form: a list as a repeated field, and null as none.
func formBody(body json.RawMessage) (string, error) {
	value, err := jq.DecodeJSON(body)
	if err != nil {
		return "", fmt.Errorf("the body is not valid JSON: %w", err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return "", fmt.Errorf("a body of the type %s must be an object or a text, got %s", typeForm, jq.TypeName(value))
	}
	form := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		list, ok := object[name].([]any)
		if !ok {
			list = []any{object[name]}
		}
		for _, item := range list {
			text, err := formField(item)
			if err != nil {
				return "", fmt.Errorf("the field %q of a form %w", apperror.Excerpt(name, maxQuoted), err)
			}
			if item != nil {
				form.Add(name, text)
			}
		}
	}
	return form.Encode(), nil
}

func formField(item any) (string, error) {
	switch v := item.(type) {
	case string:
		return v, nil
	case []any, map[string]any:
		return "", fmt.Errorf("must be a text, a number, a boolean or a list of them, got %s", jq.TypeName(item))
	}
	text, err := jq.EncodeJSON(item)
	return string(text), err
}

func setDefault(h http.Header, name, value string) {
	if value != "" && h.Get(name) == "" {
		h.Set(name, value)
	}
}

// mediaType returns the type without parameters, in lower case. It is empty if there is no valid one.
func mediaType(contentType string) string {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media, _, _ = strings.Cut(contentType, ";")
	}
	return strings.ToLower(strings.TrimSpace(media))
}

func isJSON(media string) bool {
	return media == typeJSON || media == "text/json" || strings.HasSuffix(media, "+json")
}
