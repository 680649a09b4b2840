package keyring

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// digestInfo separates the keys of digests from those that seal values.
const digestInfo = "signalbox request digest"

// Digest returns a keyed digest (HMAC-SHA-256) of a value, preceded by the ID of the active key. Without the key the value cannot be guessed
// from it, even where it is short.
func (r *Ring) Digest(value []byte) (string, error) {
	sum, err := r.mac(r.active, value)
	return r.active + ":" + base64.RawStdEncoding.EncodeToString(sum), err
}

// Matches reports whether a digest is that of the value. known is false, and same has no meaning, where the digest was made with a key that
// the ring no longer has or is malformed.
func (r *Ring) Matches(digest string, value []byte) (same, known bool) {
	colon := strings.LastIndexByte(digest, ':')
	if colon < 0 || r.keys[digest[:colon]] == nil {
		return false, false
	}
	want, err := base64.RawStdEncoding.DecodeString(digest[colon+1:])
	if err != nil {
		return false, false
	}
	sum, err := r.mac(digest[:colon], value)
	return err == nil && hmac.Equal(sum, want), err == nil
}

func (r *Ring) mac(id string, value []byte) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, r.keys[id], nil, digestInfo, KeySize)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, key)
	_, _ = h.Write(value) // never fails, according to its documentation
	return h.Sum(nil), nil
}
