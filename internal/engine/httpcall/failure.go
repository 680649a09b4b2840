package httpcall

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall/authn"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall/scrub"
	"github.com/signalbox-dev/signalbox/internal/secret"
)

// Bounds on text that comes from outside and goes into errors, in bytes.
const (
	maxQuoted = 200
	maxTitle  = 200
	maxDetail = 1024
)

// errTimeLimit is the cause of a call that took longer than it may.
var errTimeLimit = errors.New("time limit reached")

// answered is the failure of an answer whose status is an error.
func answered(r flow.HTTPRequest, res *http.Response, body []byte) error {
	contentType := res.Header.Get(headerContentType)
	title, said := problemDetail(contentType, body)
	if title == "" {
		title = http.StatusText(res.StatusCode)
	}
	if title == "" {
		title = fmt.Sprintf("HTTP status %d", res.StatusCode)
	}
	if said == "" && (isJSON(mediaType(contentType)) || isText(mediaType(contentType))) {
		said, _ = asText(contentType, body)
	}
	detail := fmt.Sprintf("%s answered %d", subject(r), res.StatusCode)
	if said = oneLine(said); said != "" {
		detail += ": " + said
	}
	return failure(flow.CategoryAnswered, dsl.ErrorTypeCommunication, res.StatusCode, oneLine(title), detail)
}

// invalidRequest is the failure of a request that cannot be sent.
func invalidRequest(r flow.HTTPRequest, err error) error {
	detail := fmt.Sprintf("%s was not sent: %v", subject(r), err)
	return failure(flow.CategoryRefused, dsl.ErrorTypeConfiguration, http.StatusBadRequest, "Invalid request", detail)
}

func notJSON(r flow.HTTPRequest, err error) error {
	detail := fmt.Sprintf("%s answered with a body announced as JSON that is none: %v", subject(r), err)
	return failure(flow.CategoryAnswered, dsl.ErrorTypeCommunication, http.StatusBadGateway, "Invalid response", detail)
}

func tooLarge(r flow.HTTPRequest, err error) error {
	detail := fmt.Sprintf("%s: %v", subject(r), err)
	return failure(flow.CategoryTooLarge, dsl.ErrorTypeCommunication, http.StatusBadGateway, "Response too large", detail)
}

// transportFailure is the failure of an exchange that gave no complete answer. parent is the activity's context,
// bounded the one with the call's own time limit.
func transportFailure(parent, bounded context.Context, r flow.HTTPRequest, err error) error {
	if errors.Is(parent.Err(), context.Canceled) {
		return fmt.Errorf("%s: %w", subject(r), parent.Err())
	}
	var blocked *blockedError
	switch {
	case errors.As(err, &blocked):
		detail := fmt.Sprintf("%s was refused: %s", subject(r), blocked.what)
		return failure(flow.CategoryRefused, dsl.ErrorTypeAuthorization, http.StatusForbidden, "Call refused", detail)
	case errors.Is(err, errTooLarge):
		return tooLarge(r, err)
	}
	status, title := classify(bounded, err)
	detail := fmt.Sprintf("%s failed: %s", subject(r), reason(bounded, r, err))
	return failure(flow.CategoryTransport, dsl.ErrorTypeCommunication, status, title, detail)
}

func classify(bounded context.Context, err error) (int, string) {
	var (
		dns         *net.DNSError
		op          *net.OpError
		timeout     net.Error
		certificate *tls.CertificateVerificationError
		alert       tls.AlertError
		record      tls.RecordHeaderError
		authority   x509.UnknownAuthorityError
	)
	switch {
	case bounded.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return http.StatusGatewayTimeout, "No answer in time"
	case errors.As(err, &dns):
		return http.StatusServiceUnavailable, "Name not resolved"
	case errors.As(err, &certificate), errors.As(err, &alert), errors.As(err, &record), errors.As(err, &authority):
		return http.StatusBadGateway, "TLS failed"
	case errors.As(err, &op) && op.Op == "dial":
		return http.StatusServiceUnavailable, "Not reachable"
	}
	return http.StatusBadGateway, "No valid answer"
}

// reason is what went wrong without the method and URL that net/http puts before it.
func reason(bounded context.Context, r flow.HTTPRequest, err error) string {
	if errors.Is(context.Cause(bounded), errTimeLimit) {
		return fmt.Sprintf("no complete answer within %s", r.Timeout)
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return err.Error()
}

// failure makes the error that crosses the wire. What net/http said is not attached as its cause: that text repeats the
// whole URL, with what may be secret in its query.
func failure(category flow.Category, kind string, status int, title, detail string) error {
	return &failed{category, dsl.Error{Type: kind, Status: status, Title: title, Detail: detail}}
}

// failed is a failure on its way out.
type failed struct {
	category flow.Category
	problem  dsl.Error
}

func (f *failed) Error() string { return f.problem.Error() }

// outward is how an error leaves: without secrets, and only then shortened, as half a secret would not be found.
func outward(err error, s *scrub.Scrubber, sent []flow.Attempt) error {
	f, ok := errors.AsType[*failed](err)
	if !ok {
		return err
	}
	p := f.problem
	p.Title, p.Detail = clip(s.Text(p.Title), maxTitle), clip(s.Text(p.Detail), maxDetail)
	return flow.CallError(f.category, p, nil, sent...)
}

// unresolved is the failure of a request whose secrets or credentials cannot be had. Nothing was sent.
func unresolved(parent context.Context, r flow.HTTPRequest, err error) error {
	if errors.Is(parent.Err(), context.Canceled) {
		return fmt.Errorf("%s: %w", subject(r), parent.Err())
	}
	kind, status, title := dsl.ErrorTypeConfiguration, http.StatusBadRequest, "Secret not usable"
	var provider *providerError
	switch {
	case errors.Is(err, secret.ErrMissing) && r.ReportAttempts:
		kind, status, title = dsl.ErrorTypeAuthorization, http.StatusForbidden, "Secret not found"
	case errors.Is(err, secret.ErrMissing): // runs of older interpreters, which report no attempts, keep the error that they began with
		title = "Secret not found"
	case errors.As(err, &provider):
		status, title = http.StatusServiceUnavailable, "Secret not available"
	}
	return failure(flow.CategoryRefused, kind, status, title, fmt.Sprintf("%s was not sent: %v", subject(r), err))
}

// unauthenticated is the failure of a request for which its authority gave no credentials.
func unauthenticated(parent, bounded context.Context, r flow.HTTPRequest, err error) error {
	var (
		refused *authn.RefusedError
		network *url.Error
	)
	switch {
	case errors.As(err, &refused):
		detail := fmt.Sprintf("%s was not sent: %s", subject(r), refused.What)
		return failure(flow.CategoryRefused, dsl.ErrorTypeAuthentication, http.StatusUnauthorized, "Not authenticated", detail)
	case errors.As(err, &network), bounded.Err() != nil:
		return transportFailure(parent, bounded, r, err)
	}
	return invalidRequest(r, err)
}

// subject names the call without what may be secret in its URL: user, query and fragment.
func subject(r flow.HTTPRequest) string {
	u, err := url.Parse(r.URL)
	if err != nil {
		return "the call " + r.Method
	}
	u.User, u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = nil, "", "", "", false
	return fmt.Sprintf("%s %s", r.Method, clip(u.String(), maxQuoted))
}

// oneLine makes outside text fit for a line: runs of space and control characters become one space.
func oneLine(s string) string {
	s = clip(s, 2*maxDetail)
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
}

// clip shortens to at most limit bytes, at the end of a character.
func clip(s string, limit int) string {
	const mark = "…"
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-len(mark)], "") + mark
}
