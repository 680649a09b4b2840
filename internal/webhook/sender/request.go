package sender

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/signalbox-dev/signalbox/internal/backoff"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

const (
	maxHeaderBytes  = 64 << 10
	maxReadResponse = 1 << 20
	idleConnections = 100
	idleTimeout     = 90 * time.Second
	keepAlive       = 30 * time.Second
)

// newClient returns a client that follows no redirects and uses no proxy of the environment.
func newClient(o Options) *http.Client {
	dialer := &net.Dialer{KeepAlive: keepAlive, ControlContext: o.Guard.Control}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
			MaxIdleConns: idleConnections, MaxIdleConnsPerHost: PerWebhook, IdleConnTimeout: idleTimeout,
			MaxResponseHeaderBytes: maxHeaderBytes,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// attempt makes one request.
func (s *Sender) attempt(ctx context.Context, c webhook.Claim) answer {
	began := s.o.Now()
	a := answer{attempt: webhook.Attempt{Time: began.UTC()}}
	t, err := webhook.Open(s.o.Keys, c.Webhook)
	if err == nil {
		err = s.exchange(ctx, c, t, &a)
	}
	if err != nil {
		a.attempt.Error = line(err.Error(), redact.NewScrubber(secretsOf(t)...))
	}
	a.attempt.Duration = s.o.Now().Sub(began)
	return a
}

// exchange sends the request and reads the response into a.
func (s *Sender) exchange(ctx context.Context, c webhook.Claim, t webhook.Target, a *answer) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	req, err := s.request(ctx, c, t, a.attempt.Time)
	if err != nil {
		return err
	}
	res, err := s.client.Do(req)
	if err != nil {
		return transport(err, s.o.Timeout)
	}
	defer func() { _ = res.Body.Close() }()
	a.attempt.HTTPStatus = res.StatusCode
	// The body is not needed: an error while it is read does not change the result. A part of it is not kept, because it
	// may end within a secret.
	if body, err := io.ReadAll(io.LimitReader(res.Body, maxReadResponse+1)); err == nil && len(body) <= maxReadResponse {
		a.attempt.Response = text(string(body), redact.NewScrubber(secretsOf(t)...))
	}
	a.retryAfter = backoff.RetryAfter(res.Header.Get("Retry-After"), s.o.Now(), maxRetry)
	switch status := res.StatusCode; {
	case status >= 200 && status < 300:
		return nil
	case status >= 300 && status < 400:
		return fmt.Errorf("the receiver answered %d %s; redirects are not followed: use the final address", status,
			http.StatusText(status))
	default:
		return fmt.Errorf("the receiver answered %d %s", status, http.StatusText(status))
	}
}

// request returns the signed request of a delivery.
func (s *Sender) request(ctx context.Context, c webhook.Claim, t webhook.Target, at time.Time) (*http.Request, error) {
	body, contentType, err := bodyOf(c.Webhook, t, c.Delivery)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address of the webhook is not a URL: update it")
	}
	signature, err := webhook.Signature(t.Secrets(at), c.Delivery.ID, at, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("User-Agent", s.o.UserAgent)
	// The names of Standard Webhooks are in lower case; HTTP does not distinguish.
	req.Header.Set("Webhook-Id", c.Delivery.ID)
	req.Header.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	req.Header.Set("Webhook-Signature", signature)
	return req, nil
}

// secretsOf returns the texts that no error or response may show.
func secretsOf(t webhook.Target) []string {
	values := []string{t.Secret, t.RoutingKey}
	if t.Previous != "" {
		values = append(values, t.Previous)
	}
	u, err := url.Parse(t.URL)
	if err != nil {
		return values
	}
	password, _ := u.User.Password()
	values = append(values, u.User.Username(), password)
	for _, parameter := range u.Query() {
		values = append(values, parameter...)
	}
	const secretPath = 20 // paths as short as /hook are not credentials
	if len(u.Path) > secretPath {
		values = append(values, u.Path)
	}
	return values
}

// transport returns the cause of a request without a response, without its URL.
func transport(err error, timeout time.Duration) error {
	if failed, is := errors.AsType[*url.Error](err); is {
		if failed.Timeout() {
			return fmt.Errorf("no response within %v", timeout)
		}
		err = failed.Err
	}
	return fmt.Errorf("no response: %w", err)
}

// line returns a text without secrets as one line of bounded length.
func line(s string, secrets *redact.Scrubber) string {
	const most = 500
	return clip(secrets.Text(strings.Join(strings.Fields(secrets.Text(s)), " ")), most)
}

// text returns the beginning of a response, without secrets and control characters. It searches for secrets before it
// removes characters and after that, and cuts the text last.
func text(s string, secrets *redact.Scrubber) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(secrets.Text(s), "?"))
	return clip(secrets.Text(s), webhook.MaxResponse)
}

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
