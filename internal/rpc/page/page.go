// Package page makes and reads page tokens: a place in a list, bound to the filters of the request it was made for.
//
// A token is opaque to callers. It is not a secret and grants nothing; the hash in it only notices a token that is
// used with other filters, which would skip or repeat rows silently.
//
//	key := page.Key(request)
//	cursor, err := page.Decode[run.Cursor](request.GetPageToken(), key) // nil for the first page
//	token := page.Encode(run.Cursor{…}, key)
package page

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signalbox-dev/signalbox/internal/fault"
)

// maxToken bounds what is decoded; the longest cursor is a name of a few hundred bytes.
const maxToken = 4096

type token[C any] struct {
	Key    string `json:"k"`
	Cursor *C     `json:"c"`
}

// Key returns the hash of what a list is asked for: its request without page_size and page_token.
func Key(request proto.Message) (string, error) {
	bare := proto.Clone(request)
	m := bare.ProtoReflect()
	for _, name := range []protoreflect.Name{"page_size", "page_token"} {
		if field := m.Descriptor().Fields().ByName(name); field != nil {
			m.Clear(field)
		}
	}
	wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(bare)
	if err != nil {
		return "", fmt.Errorf("hash the filters of %s: %w", m.Descriptor().FullName(), err)
	}
	sum := sha256.Sum256(append([]byte(m.Descriptor().FullName()+"\n"), wire...))
	return hex.EncodeToString(sum[:8]), nil
}

// Encode returns the token of a place in the list of this key.
func Encode[C any](cursor C, key string) (string, error) {
	text, err := json.Marshal(token[C]{Key: key, Cursor: &cursor})
	if err != nil {
		return "", fmt.Errorf("make a page token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(text), nil
}

// Decode returns the place that a token names, or nil for the empty token of the first page.
func Decode[C any](text, key string) (*C, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > maxToken {
		return nil, invalid("it is longer than any token of this server")
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, invalid("it was not made by this server")
	}
	var t token[C]
	if err := json.Unmarshal(raw, &t); err != nil || t.Cursor == nil {
		return nil, invalid("it was not made by this server")
	}
	if t.Key != key {
		return nil, invalid("it was made for another list or for other filters")
	}
	return t.Cursor, nil
}

func invalid(why string) error {
	return fault.New(fault.Invalid, fault.InvalidPageToken,
		"page token: %s; start again without one and keep the filters while turning pages", why).
		WithField("page_token", "%s", why)
}
