package keyring

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

// fingerprintSize is the size of a fingerprint, in bytes.
const fingerprintSize = 8

// The texts separate the keys of digests from those that seal values, and from each other.
const (
	digestInfo      = "signalbox request digest"
	indexInfo       = "signalbox index"
	fingerprintInfo = "signalbox fingerprint"
)

// Digest returns a keyed digest (HMAC-SHA-256) of a value, preceded by the ID of the active key. Without the key the
// value cannot be guessed from it, even where it is short.
func (r *Ring) Digest(value []byte) (string, error) {
	sum, err := r.mac(digestInfo, r.active, value)
	return r.active + ":" + base64.RawStdEncoding.EncodeToString(sum), err
}

// Matches reports whether a digest is that of the value. known is false, and same has no meaning, where the digest was
// made with a key that the ring no longer has or is malformed.
func (r *Ring) Matches(digest string, value []byte) (same, known bool) {
	colon := strings.LastIndexByte(digest, ':')
	if colon < 0 || r.keys[digest[:colon]] == nil {
		return false, false
	}
	want, err := base64.RawStdEncoding.DecodeString(digest[colon+1:])
	if err != nil {
		return false, false
	}
	sum, err := r.mac(digestInfo, digest[:colon], value)
	return err == nil && hmac.Equal(sum, want), err == nil
}

// SameKey reports whether two digests were made with the same key. Others cannot be compared with each other.
func SameKey(a, b string) bool {
	colon := strings.LastIndexByte(a, ':')
	return colon >= 0 && colon == strings.LastIndexByte(b, ':') && a[:colon] == b[:colon]
}

// Index returns a text by which a database finds a value that it has sealed: a keyed digest with the active key. Equal
// values with an equal kind and owner have the same text.
func (r *Ring) Index(value []byte, about ...string) (string, error) {
	return r.index(r.active, value, about)
}

// Indexes returns the texts that Index may have returned for a value: one for each key.
func (r *Ring) Indexes(value []byte, about ...string) ([]string, error) {
	list := make([]string, 0, len(r.keys))
	for id := range r.keys {
		text, err := r.index(id, value, about)
		if err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, nil
}

func (r *Ring) index(id string, value []byte, about []string) (string, error) {
	sum, err := r.mac(indexInfo, id, context(nil, append(slices.Clip(about), string(value))))
	return base64.RawURLEncoding.EncodeToString(sum), err
}

// Fingerprint returns a text by which two processes find out whether a key is the same in both, and which does not
// reveal it. It returns false where the ring does not have the key.
func (r *Ring) Fingerprint(id string) (text string, known bool) {
	if r.keys[id] == nil {
		return "", false
	}
	sum, err := r.mac(fingerprintInfo, id, nil)
	if err != nil {
		return "", false
	}
	return hex.EncodeToString(sum[:fingerprintSize]), true
}

func (r *Ring) mac(info, id string, value []byte) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, r.keys[id], nil, info, KeySize)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, key)
	_, _ = h.Write(value) // never fails, according to its documentation
	return h.Sum(nil), nil
}
