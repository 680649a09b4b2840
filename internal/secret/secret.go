// Package secret defines secrets and their providers: texts that workflows use in calls and cannot read. A definition
// names them (use.secrets), and the process that makes a call gets the value from a [Provider] right before the call.
//
//	provider := secret.NewProvider(secret.ProviderOptions{Dir: "/run/secrets/signalbox"})
//	value, err := provider.Resolve(ctx, "shop", "payment")
//	token, err := value.Member("payment", "token")
//
// No value is stored longer than its use. No error of this package or of a provider ever contains a value, or a part of
// one.
package secret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/internal/redact"
)

// MaxBytes is the maximum length of a secret.
const MaxBytes = 64 << 10

// ErrMissing is wrapped by a provider's errors for a secret that it does not have.
var ErrMissing = errors.New("not found")

// Provider provides the values of secrets. It is safe for concurrent use.
type Provider interface {
	// Resolve returns the value of a project's secret. The error wraps [ErrMissing] where there is none, and never
	// contains a value.
	Resolve(ctx context.Context, project, name string) (Value, error)
}

// Value is the value of a secret: a text, or a JSON object of which a workflow uses members. It is never printed.
type Value []byte

// String hides the value in all formatted output.
func (Value) String() string { return redact.Mark }

// GoString hides the value from %#v.
func (v Value) GoString() string { return v.String() }

// MarshalJSON hides the value.
func (v Value) MarshalJSON() ([]byte, error) { return json.Marshal(v.String()) }

// Member returns the text of a secret, or of a member of a secret that is a JSON object. name is for the errors.
func (v Value) Member(name string, members ...string) (string, error) {
	if !utf8.Valid(v) {
		return "", fmt.Errorf("the secret %q is not text", name)
	}
	if len(members) == 0 {
		if object, err := v.Object(name); err == nil && object != nil {
			return "", fmt.Errorf("the secret %q is a JSON object; name one of its members: %s", name,
				strings.Join(sortedNames(object), ", "))
		}
		return string(v), nil
	}
	object, err := v.Object(name)
	if err != nil {
		return "", err
	}
	at := name
	for i, member := range members {
		found, ok := object[member]
		if !ok {
			return "", fmt.Errorf("the secret %q has no member %q: %w", at, member, ErrMissing)
		}
		at += "." + member
		switch found := found.(type) {
		case map[string]any:
			object = found
			continue
		case string:
			if i == len(members)-1 {
				return found, nil
			}
		case json.Number:
			if i == len(members)-1 {
				return found.String(), nil
			}
		}
		return "", fmt.Errorf("the member %q of a secret is not text", at)
	}
	return "", fmt.Errorf("the member %q of a secret is a JSON object; name one of its members: %s", at,
		strings.Join(sortedNames(object), ", "))
}

// Texts returns all texts of a secret that must not be shown: the value itself or, of a JSON object or array, every
// text and number in it.
func (v Value) Texts() []string {
	switch decoded := v.decode().(type) {
	case map[string]any, []any:
		return texts(nil, decoded)
	}
	return []string{string(v)}
}

// decode returns the JSON value of a secret, with json.Number for numbers; nil if it is not one JSON value.
func (v Value) decode() any {
	decoder := json.NewDecoder(strings.NewReader(string(v)))
	decoder.UseNumber()
	var decoded any
	if decoder.Decode(&decoded) != nil || decoder.More() {
		return nil
	}
	return decoded
}

func texts(found []string, v any) []string {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			found = texts(found, member)
		}
	case []any:
		for _, item := range v {
			found = texts(found, item)
		}
	case string:
		found = append(found, v)
	case json.Number:
		found = append(found, v.String())
	}
	return found
}

// Object returns a secret that is a JSON object; numbers in it are json.Number.
func (v Value) Object(name string) (map[string]any, error) {
	object, ok := v.decode().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the secret %q is not a JSON object", name) // what the decoder says would quote it
	}
	return object, nil
}

func sortedNames(object map[string]any) []string {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
