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

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/httpmessage"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall/authn"
	"github.com/signalbox-dev/signalbox/internal/netguard"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/secret"
)

// notShown stands for the cause of a failure that may quote an address with a secret in it.
const notShown = "the cause is not shown, because the address contains a secret"

// errTimeLimit is the cause of a call that exceeded its time limit.
var errTimeLimit = errors.New("time limit reached")

// errRedirects reports a call that was redirected too often.
var errRedirects = errors.New("the call was redirected")

// statusError returns the failure of a response with an error status.
func statusError(r flow.HTTPRequest, res *http.Response, body []byte, s *redact.Scrubber) error {
	return &failed{flow.CategoryAnswered,
		httpmessage.StatusError(r.Method, r.URL, res.StatusCode, res.Header.Get("Content-Type"), body, s.Text)}
}

// invalidRequest returns the failure of a request that cannot be sent.
func invalidRequest(r flow.HTTPRequest, err error) error {
	return &failed{flow.CategoryRefused, httpmessage.InvalidRequest(r.Method, r.URL, err)}
}

func notJSON(r flow.HTTPRequest, err error) error {
	return &failed{flow.CategoryAnswered, httpmessage.NotJSON(r.Method, r.URL, err)}
}

func tooLarge(r flow.HTTPRequest, err error) error {
	detail := fmt.Sprintf("%s: %v", subject(r), err)
	return failure(flow.CategoryTooLarge, dsl.ErrorTypeCommunication, http.StatusBadGateway, "Response too large", detail)
}

// transportFailure returns the failure of an exchange without a complete response. parent is the activity's context,
// bounded the one with the call's own time limit. secretOrigin is set if the error may quote an origin that contains a
// secret.
func transportFailure(parent, bounded context.Context, r flow.HTTPRequest, secretOrigin bool, err error) error {
	if errors.Is(parent.Err(), context.Canceled) {
		return fmt.Errorf("%s: %w", subject(r), parent.Err())
	}
	var blocked *netguard.BlockedError
	switch {
	case errors.As(err, &blocked):
		what := blocked.What
		if secretOrigin {
			what = "its address, or that of a redirect, is not allowed; " + notShown
		}
		detail := fmt.Sprintf("%s was rejected: %s", subject(r), what)
		return failure(flow.CategoryRefused, dsl.ErrorTypeAuthorization, http.StatusForbidden, "Call refused", detail)
	case errors.Is(err, errTooLarge):
		return tooLarge(r, err)
	case errors.Is(context.Cause(bounded), errTimeLimit):
		return &failed{flow.CategoryTransport, httpmessage.NoAnswer(r.Method, r.URL, r.Timeout)}
	}
	status, title := classify(bounded, err)
	why := reason(err)
	if secretOrigin {
		why = notShown
	}
	detail := fmt.Sprintf("%s failed: %s", subject(r), why)
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
	case errors.Is(err, errRedirects):
		return http.StatusBadGateway, "Too many redirects"
	case errors.As(err, &dns):
		return http.StatusServiceUnavailable, "Name not resolved"
	case errors.As(err, &certificate), errors.As(err, &alert), errors.As(err, &record), errors.As(err, &authority):
		return http.StatusBadGateway, "TLS failed"
	case errors.As(err, &op) && op.Op == "dial":
		return http.StatusServiceUnavailable, "Not reachable"
	}
	return http.StatusBadGateway, "No valid answer"
}

// reason returns the error without the method and URL that net/http prepends.
func reason(err error) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return err.Error()
}

// failure returns the error for the wire. The error of net/http is not attached as its cause: that text contains the
// whole URL, with secrets in its query.
func failure(category flow.Category, kind string, status int, title, detail string) error {
	return &failed{category, dsl.Error{Type: kind, Status: status, Title: title, Detail: detail}}
}

// failed is a failure before its redaction.
type failed struct {
	category flow.Category
	runError dsl.Error
}

func (f *failed) Error() string { return f.runError.Error() }

// redacted returns an error without secrets. It shortens texts only after the redaction, because half a secret would
// not be found.
func redacted(err error, s *redact.Scrubber, sent []flow.Attempt) error {
	f, ok := errors.AsType[*failed](err)
	if !ok {
		return err
	}
	p := f.runError
	p.Title, p.Detail = s.Text(p.Title), s.Text(p.Detail)
	return flow.CallError(f.category, httpmessage.Shorten(p), nil, sent...)
}

// unresolved returns the failure of a request with unavailable secrets or credentials. Nothing was sent.
func unresolved(parent context.Context, r flow.HTTPRequest, err error) error {
	if errors.Is(parent.Err(), context.Canceled) {
		return fmt.Errorf("%s: %w", subject(r), parent.Err())
	}
	e := httpmessage.NotAuthenticated(r.Method, r.URL, err)
	var provider *providerError
	switch {
	case errors.Is(err, secret.ErrMissing):
		e.Type, e.Status, e.Title = dsl.ErrorTypeAuthorization, http.StatusForbidden, "Secret not found"
	case errors.As(err, &provider):
		e.Status, e.Title = http.StatusServiceUnavailable, "Secret not available"
	}
	return &failed{flow.CategoryRefused, e}
}

// unauthenticated returns the failure of a request without credentials from its authority. secretOrigin is set if the
// address of the authority contains a secret.
func unauthenticated(parent, bounded context.Context, r flow.HTTPRequest, secretOrigin bool, err error) error {
	var (
		refused *authn.RefusedError
		network *url.Error
	)
	switch {
	case errors.As(err, &refused):
		detail := fmt.Sprintf("%s was not sent: %s", subject(r), refused.What)
		return failure(flow.CategoryRefused, dsl.ErrorTypeAuthentication, http.StatusUnauthorized, "Not authenticated",
			detail)
	case errors.As(err, &network), bounded.Err() != nil:
		return transportFailure(parent, bounded, r, secretOrigin, err)
	}
	return invalidRequest(r, err)
}

// subject identifies the call without the parts of its URL that may be secret.
func subject(r flow.HTTPRequest) string { return httpmessage.Subject(r.Method, r.URL) }
