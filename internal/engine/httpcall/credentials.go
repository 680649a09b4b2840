package httpcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/httpmessage"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall/authn"
	"github.com/signalbox-dev/signalbox/internal/secret"
)

// resolvedRequest is a request with its secrets inserted. Nothing of it may be disclosed: failures and results name the
// original request.
type resolvedRequest struct {
	flow.HTTPRequest
	method authn.Method // nil without authentication
	values []string     // all texts of the secrets in it
	// secretURL is set if the URL contains a secret, secretOrigin if its scheme, host or port does, and secretAuthority if
	// those of the authority do that grants a token. No error quotes such a URL, or what the network reports about such an
	// origin.
	secretURL, secretOrigin, secretAuthority bool
}

// resolve inserts the secrets of a request.
func (c *Caller) resolve(ctx context.Context, r flow.HTTPRequest) (*resolvedRequest, error) {
	s := &resolvedRequest{HTTPRequest: r, secretURL: hasMark(r.URL, r.Secrets),
		secretOrigin: hasMark(origin(r.URL), r.Secrets)}
	if len(r.Secrets) > 0 {
		if err := c.insertSecrets(ctx, s); err != nil {
			return nil, err
		}
	}
	if s.Authentication == nil {
		return s, nil
	}
	properties := s.Authentication.Properties
	s.secretAuthority = secretAuthority(r)
	if name := s.Authentication.Secret; name != "" {
		value, err := c.secret(ctx, s, name)
		if err != nil {
			return nil, err
		}
		if _, err := value.Object(name); err != nil {
			return nil, fmt.Errorf("%w with the properties of the authentication %s", err, s.Authentication.Scheme)
		}
		properties = json.RawMessage(value)
	}
	method, err := c.tokens.Method(r.Project, s.Authentication.Scheme, properties)
	if err != nil {
		return nil, err
	}
	s.method = method
	return s, nil
}

// providerError reports a provider that could not determine whether a secret exists.
type providerError struct{ error }

func (e *providerError) Unwrap() error { return e.error }

// secret returns the value of a secret that a request uses. Every text in it is redacted, whatever the request uses of
// it.
func (c *Caller) secret(ctx context.Context, s *resolvedRequest, name string) (secret.Value, error) {
	value, err := c.secrets.Resolve(ctx, s.Project, name)
	if err != nil && !errors.Is(err, secret.ErrMissing) {
		return nil, &providerError{err}
	}
	s.values = append(s.values, value.Texts()...)
	return value, err
}

// hasMark reports whether a text contains the mark of a secret.
func hasMark(text string, secrets map[string]flow.Secret) bool {
	for mark := range secrets {
		if strings.Contains(text, mark) {
			return true
		}
	}
	return false
}

// secretAuthority reports whether the address of a request's authority is, or contains, a secret.
func secretAuthority(r flow.HTTPRequest) bool {
	if r.Authentication.Secret != "" {
		return true
	}
	var p httpmessage.Credentials
	_ = json.Unmarshal(r.Authentication.Properties, &p) // invalid properties are reported when they are used
	return hasMark(origin(p.Authority), r.Secrets)
}

// origin returns the scheme, host and port of an address whose secrets are still marks. It returns the whole address
// where they cannot be separated from the rest.
func origin(address string) string {
	scheme, rest, separated := strings.Cut(address, "://")
	if !separated {
		return address
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return scheme + rest[strings.LastIndexByte(rest, '@')+1:]
}

// insertSecrets replaces each mark by its secret.
func (c *Caller) insertSecrets(ctx context.Context, s *resolvedRequest) error {
	pairs := make([]string, 0, 2*len(s.Secrets))
	for _, mark := range slices.Sorted(maps.Keys(s.Secrets)) {
		ref := s.Secrets[mark]
		value, err := c.secret(ctx, s, ref.Name)
		if err != nil {
			return err
		}
		text, err := value.Member(ref.Name, ref.Members...)
		if err != nil {
			return err
		}
		pairs = append(pairs, mark, text)
	}
	marks := strings.NewReplacer(pairs...)
	s.URL = marks.Replace(s.URL)
	s.Headers, s.Query = replaceAll(marks, s.Headers), replaceAll(marks, s.Query)
	var err error
	if s.Body, err = replaceInJSON(marks, s.Body); err != nil || s.Authentication == nil {
		return err
	}
	policy := *s.Authentication
	policy.Properties, err = replaceInJSON(marks, policy.Properties)
	s.Authentication = &policy
	return err
}

func replaceAll(marks *strings.Replacer, texts map[string]string) map[string]string {
	out := make(map[string]string, len(texts))
	for name, text := range texts {
		out[name] = marks.Replace(text)
	}
	return out
}

// replaceInJSON replaces the marks in the strings of a JSON value.
func replaceInJSON(marks *strings.Replacer, data json.RawMessage) (json.RawMessage, error) {
	if len(data) == 0 {
		return data, nil
	}
	v, err := jq.DecodeJSON(data)
	if err != nil {
		return nil, fmt.Errorf("the body is not valid JSON: %w", err)
	}
	return jq.EncodeJSON(replaceInValue(marks, v))
}

func replaceInValue(marks *strings.Replacer, v any) any {
	switch v := v.(type) {
	case string:
		return marks.Replace(v)
	case []any:
		for i, item := range v {
			v[i] = replaceInValue(marks, item)
		}
	case map[string]any:
		for name, member := range v {
			v[name] = replaceInValue(marks, member)
		}
	}
	return v
}

// credentials returns all texts of an exchange that must be redacted.
func (s *resolvedRequest) credentials() []string {
	if s.method == nil {
		return s.values
	}
	return append(slices.Clone(s.values), s.method.Credentials()...)
}

// noSecrets is the provider of a caller without one.
type noSecrets struct{}

func (noSecrets) Resolve(_ context.Context, _, name string) (secret.Value, error) {
	return nil, fmt.Errorf("the secret %q: %w: this worker has no secret provider", name, secret.ErrMissing)
}
