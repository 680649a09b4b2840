package httpcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	values []string     // the secrets in it
}

// resolve inserts the secrets of a request.
func (c *Caller) resolve(ctx context.Context, r flow.HTTPRequest) (*resolvedRequest, error) {
	s := &resolvedRequest{HTTPRequest: r}
	if len(r.Secrets) > 0 {
		if err := c.insertSecrets(ctx, s); err != nil {
			return nil, err
		}
	}
	if s.Authentication == nil {
		return s, nil
	}
	properties := s.Authentication.Properties
	if name := s.Authentication.Secret; name != "" {
		value, err := c.secret(ctx, r.Project, name)
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

func (c *Caller) secret(ctx context.Context, project, name string) (secret.Value, error) {
	value, err := c.secrets.Resolve(ctx, project, name)
	if err != nil && !errors.Is(err, secret.ErrMissing) {
		return nil, &providerError{err}
	}
	return value, err
}

// insertSecrets replaces each mark by its secret.
func (c *Caller) insertSecrets(ctx context.Context, s *resolvedRequest) error {
	pairs := make([]string, 0, 2*len(s.Secrets))
	for _, mark := range slices.Sorted(maps.Keys(s.Secrets)) {
		ref := s.Secrets[mark]
		value, err := c.secret(ctx, s.Project, ref.Name)
		if err != nil {
			return err
		}
		text, err := value.Member(ref.Name, ref.Members...)
		if err != nil {
			return err
		}
		pairs, s.values = append(pairs, mark, text), append(s.values, text)
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
