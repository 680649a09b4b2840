package httpmessage

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// Bounds of the texts of an error, in bytes.
const (
	maxTitle  = 200
	maxDetail = 1024
)

// Subject identifies a call without the parts of its URL that may be secret: user, query and fragment.
func Subject(method, address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the call " + method
	}
	u.User, u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = nil, "", "", "", false
	return fmt.Sprintf("%s %s", method, apperror.Excerpt(u.String(), maxQuoted))
}

// StatusError returns the error of a response with a status that is not acceptable. scrub replaces the secrets in a text
// of the response. It is applied to the decoded text before that is changed: half a secret, or one with other spaces,
// would not be found.
func StatusError(method, address string, status int, contentType string, body []byte,
	scrub func(string) string) dsl.Error {
	title, text := problemDetail(contentType, body)
	if title == "" {
		title = http.StatusText(status)
	}
	if title == "" {
		title = fmt.Sprintf("HTTP status %d", status)
	}
	if media := mediaType(contentType); text == "" && (isJSON(media) || isText(media)) {
		text, _ = asText(contentType, body)
	}
	title, text = scrub(title), scrub(text)
	detail := fmt.Sprintf("%s answered %d", Subject(method, address), status)
	if text = oneLine(text); text != "" {
		detail += ": " + text
	}
	return dsl.Error{Type: dsl.ErrorTypeCommunication, Status: status, Title: oneLine(title), Detail: detail}
}

// NotAuthenticated returns the error of a request whose secrets or credentials cannot be used.
func NotAuthenticated(method, address string, err error) dsl.Error {
	return dsl.Error{
		Type: dsl.ErrorTypeConfiguration, Status: http.StatusBadRequest, Title: "Secret not usable",
		Detail: fmt.Sprintf("%s was not sent: %v", Subject(method, address), err),
	}
}

// InvalidRequest returns the error of a request that cannot be sent.
func InvalidRequest(method, address string, err error) dsl.Error {
	return dsl.Error{
		Type: dsl.ErrorTypeConfiguration, Status: http.StatusBadRequest, Title: "Invalid request",
		Detail: fmt.Sprintf("%s was not sent: %v", Subject(method, address), err),
	}
}

// NotJSON returns the error of a response whose content is not what its type announces.
func NotJSON(method, address string, err error) dsl.Error {
	return dsl.Error{
		Type: dsl.ErrorTypeCommunication, Status: http.StatusBadGateway, Title: "Invalid response",
		Detail: fmt.Sprintf("%s answered with a body announced as JSON that is not valid JSON: %v", Subject(method, address),
			err),
	}
}

// NoAnswer returns the error of a call without a complete response in its time.
func NoAnswer(method, address string, limit time.Duration) dsl.Error {
	return dsl.Error{
		Type: dsl.ErrorTypeCommunication, Status: http.StatusGatewayTimeout, Title: "No answer in time",
		Detail: fmt.Sprintf("%s failed: no complete answer within %s", Subject(method, address), limit),
	}
}

// Shorten shortens the texts of an error of a call. It is applied last: half a secret would not be found.
func Shorten(runError dsl.Error) dsl.Error {
	runError.Title = apperror.Excerpt(runError.Title, maxTitle)
	runError.Detail = apperror.Excerpt(runError.Detail, maxDetail)
	return runError
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

// oneLine converts external text to one line: it replaces runs of spaces and control characters by one space.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
}
