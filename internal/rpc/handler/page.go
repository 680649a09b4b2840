package handler

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// maxToken bounds the decoded text; the longest cursor is a name of a few hundred bytes.
const maxToken = 4096

// pageToken is a position in a list, bound to the filters of the request that it was created for. It is opaque to
// callers, and neither secret nor an authorization; its hash only detects that a token is used with other filters,
// which would silently skip or repeat rows.
type pageToken[C any] struct {
	Key    string `json:"k"`
	Cursor *C     `json:"c"`
}

// pageKey returns the hash of the filters of a list request: all its fields except page_size and page_token.
func pageKey(request proto.Message) (string, error) {
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

// encodeToken returns the token of a position in the list with this key.
func encodeToken[C any](cursor C, key string) (string, error) {
	text, err := json.Marshal(pageToken[C]{Key: key, Cursor: &cursor})
	if err != nil {
		return "", fmt.Errorf("make a page token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(text), nil
}

// decodeToken returns the position of a token, or nil for the empty token of the first page.
func decodeToken[C any](text, key string) (*C, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > maxToken {
		return nil, invalidToken("it is longer than any token of this server")
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, invalidToken("it was not made by this server")
	}
	var t pageToken[C]
	if err := json.Unmarshal(raw, &t); err != nil || t.Cursor == nil {
		return nil, invalidToken("it was not made by this server")
	}
	if t.Key != key {
		return nil, invalidToken("it was made for another list or for other filters")
	}
	return t.Cursor, nil
}

func invalidToken(why string) error {
	return apperror.New(apperror.Invalid, apperror.InvalidPageToken,
		"page token: %s; start again without one and keep the filters while turning pages", why).
		WithField("page_token", "%s", why)
}

// pageDefault page sizes; a list may have its own.
const (
	pageDefault = 50
	pageMost    = 500
)

// pageRequest is the common part of all list requests.
type pageRequest interface {
	proto.Message
	GetPageSize() int32
	GetPageToken() string
}

// listPage returns one page of a list. It requests one item more than fits, and if there is one, it creates the token
// of the last item on the page.
func listPage[C, T any](
	req pageRequest, standard, most int, list func(after *C, limit int) ([]T, error), cursor func(T) C,
) (items []T, next string, err error) {
	return searchPage(req, standard, most, func(after *C, limit int) (items []T, last *C, err error) {
		items, err = list(after, limit+1)
		if err == nil && len(items) > limit {
			items = items[:limit]
			end := cursor(items[limit-1])
			last = &end
		}
		return items, last, err
	})
}

// searchPage returns one page of a list that is searched in parts: the page may have fewer items than fit and not be
// the last one. list returns at most limit items, and the position after which the next page begins; nil after the last
// one.
func searchPage[C, T any](
	req pageRequest, standard, most int, list func(after *C, limit int) ([]T, *C, error),
) (items []T, next string, err error) {
	size, err := pageSize(req.GetPageSize(), standard, most)
	if err != nil {
		return nil, "", err
	}
	key, err := pageKey(req)
	if err != nil {
		return nil, "", err
	}
	after, err := decodeToken[C](req.GetPageToken(), key)
	if err != nil {
		return nil, "", err
	}
	items, last, err := list(after, size)
	if err != nil || last == nil {
		return items, "", err
	}
	next, err = encodeToken(*last, key)
	return items, next, err
}

func pageSize(asked int32, standard, most int) (int, error) {
	return bounded("pageSize", "page size", asked, standard, most)
}

// bounded returns the number that a field asks for: the standard for 0.
func bounded(field, what string, asked int32, standard, most int) (int, error) {
	switch {
	case asked == 0:
		return standard, nil
	case asked < 0 || int(asked) > most:
		return 0, apperror.New(apperror.Invalid, apperror.InvalidArgument, "%s %d: give 1 to %d, or 0 for %d", what, asked,
			most, standard).
			WithField(field, "must be between 0 and %d", most)
	}
	return int(asked), nil
}

// startOf returns the start position of a page: the zero value for the first page.
func startOf[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
