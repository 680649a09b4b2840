package httpcall

import (
	"context"
	"errors"
	"net/http"

	"github.com/signalbox-dev/signalbox/dsl/httpmessage"
)

const (
	headerAccept         = "Accept"
	headerIdempotencyKey = "Idempotency-Key"
	headerUserAgent      = "User-Agent"
)

// build returns the request to send. Its errors mean that nothing can be sent.
func (c *Caller) build(ctx context.Context, r *resolvedRequest) (*http.Request, error) {
	target, err := httpmessage.Target(r.URL, r.Query)
	switch {
	case err != nil && r.secretURL:
		return nil, errors.New("its URL, which contains a secret, cannot be used: it has to begin with http:// or https:// " +
			"and a host")
	case err != nil:
		return nil, err
	}
	headers, host, err := httpmessage.Headers(r.Headers)
	if err != nil {
		return nil, err
	}
	body, err := httpmessage.Body(r.Body, headers)
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
	httpmessage.SetDefault(headers, headerAccept, httpmessage.Accept)
	httpmessage.SetDefault(headers, headerUserAgent, c.userAgent)
	if !safe(r.Method) {
		httpmessage.SetDefault(headers, headerIdempotencyKey, r.IdempotencyKey)
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
