package httpmessage

import (
	"bytes"
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
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// Timeout bounds a call whose task has no timeout of its own.
const Timeout = 60 * time.Second

// maxQuoted bounds a text of a document in an error, in bytes.
const maxQuoted = 200

const (
	headerContentType = "Content-Type"
	typeJSON          = "application/json"
	typeForm          = "application/x-www-form-urlencoded"
)

// Accept is the header Accept of a request that sets none.
const Accept = typeJSON + ", */*;q=0.5"

// Target returns the URL of a request, with its query and without a fragment.
func Target(address string, query map[string]string) (*url.URL, error) {
	u, err := url.Parse(address)
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
	if len(query) > 0 {
		added := make(url.Values, len(query))
		for name, value := range query {
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

// Headers checks and copies the headers of a request. It returns Host separately, as net/http requires.
func Headers(given map[string]string) (http.Header, string, error) {
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

// Body returns the body of a request: JSON or, if Content-Type names a type other than JSON, the text of a JSON string,
// and a form of an object. It adds the Content-Type of JSON to headers without one.
func Body(value json.RawMessage, headers http.Header) (io.Reader, error) {
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
	SetDefault(headers, headerContentType, typeJSON)
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

// SetDefault sets a header that is not set yet, unless value is empty.
func SetDefault(h http.Header, name, value string) {
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
