// Package keyring encrypts values, so that a reader of a database, a backup or Temporal's histories requires the keys
// to read them.
//
//	ring, err := keyring.Open("2026-11", []keyring.KeyFile{{ID: "2026-11", File: "/etc/signalbox/2026-11.key"}})
//	sealed, err := ring.Seal(plain, "run", runID, "input")
//	plain, err = ring.Open(sealed, "run", runID, "input")
//
// Each value is sealed with AES-256-GCM under its own key, which is derived (HKDF-SHA-256) from the ring's active key
// and a random salt, so that the number of values sealed with one key is not limited. The kind and the owner of a value
// are authenticated with it: a value that was moved to another row does not open. The ID of the key precedes the sealed
// value in plain text. To rotate keys, add a key and make it the active one: the other keys still open the values that
// they have sealed.
//
// The package reads key files and nothing else. It does not store sealed values.
package keyring

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

const (
	// version is the first byte of every sealed value.
	version = 1
	// saltSize makes a second use of a derived key practically impossible; the nonce of GCM is random as well.
	saltSize = 16
	// KeySize is the size of a key, in bytes.
	KeySize = 32
)

// ErrForged means that a sealed value is damaged, was sealed with another key of the same ID, or belongs to another
// row.
var ErrForged = errors.New("the sealed value is damaged, belongs elsewhere, or was sealed with another key of this ID")

// MissingKeyError means that a value was sealed with a key that the ring does not have.
type MissingKeyError struct{ ID string }

// Error names the key and the setting that must have it.
func (e *MissingKeyError) Error() string {
	return fmt.Sprintf("it was sealed with the key %q, which is not in encryption.keys; put that key back to open it",
		e.ID)
}

// Ring seals with one key and opens with all of its keys. It is safe for concurrent use.
type Ring struct {
	active string
	keys   map[string][]byte
	// openOnly reports that values are not to be sealed, strict that values that are not sealed are refused.
	openOnly, strict bool
}

// New returns a ring of keys by ID, each of [KeySize] bytes.
func New(active string, keys map[string][]byte) (*Ring, error) {
	for id, key := range keys {
		if len(key) != KeySize {
			return nil, fmt.Errorf("key %q has %d bytes, not %d", id, len(key), KeySize)
		}
		if bytes.Equal(key, make([]byte, KeySize)) {
			return nil, fmt.Errorf("key %q is all zeros; make a random one with `%s`", id, MakeKey)
		}
		if id == "" || len(id) > maxID {
			return nil, fmt.Errorf("key ID %q is empty or longer than %d bytes", id, maxID)
		}
	}
	if _, ok := keys[active]; !ok {
		return nil, fmt.Errorf("the active key %q is none of the keys", active)
	}
	return &Ring{active: active, keys: keys}, nil
}

// Opening returns a ring that opens values and requests that none are sealed: for the time in which older programs,
// which cannot open values, still read the same data.
func (r *Ring) Opening() *Ring { return &Ring{active: r.active, keys: r.keys, openOnly: true} }

// Strict returns a ring that rejects values that are not sealed, for readers of data that others may write.
func (r *Ring) Strict() *Ring {
	return &Ring{active: r.active, keys: r.keys, openOnly: r.openOnly, strict: true}
}

// RequiresSealed reports whether values that are not sealed are refused.
func (r *Ring) RequiresSealed() bool { return r.strict }

// Seals reports whether values are to be sealed.
func (r *Ring) Seals() bool { return !r.openOnly }

// Active returns the ID of the key that seals values.
func (r *Ring) Active() string { return r.active }

// Current reports whether a sealed value was sealed with the active key.
func (r *Ring) Current(sealed []byte) bool {
	id, err := KeyOf(sealed)
	return err == nil && id == r.active
}

// Seal seals a value. about names its kind and its owner; Open requires the same.
func (r *Ring) Seal(plain []byte, about ...string) ([]byte, error) {
	head := slices.Concat([]byte{version, byte(len(r.active))}, []byte(r.active)) //nolint:gosec // at most maxID
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails, according to its documentation
	box, err := r.box(r.active, salt)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(head)+saltSize+len(plain)+box.Overhead())
	out = append(append(out, head...), salt...)
	return box.Seal(out, nil, plain, context(head, about)), nil //nolint:gosec // the box makes the nonce
}

// Open opens a value that Seal returned. Its errors are [*MissingKeyError] and [ErrForged].
func (r *Ring) Open(sealed []byte, about ...string) ([]byte, error) {
	id, err := KeyOf(sealed)
	if err != nil {
		return nil, err
	}
	if _, ok := r.keys[id]; !ok {
		return nil, &MissingKeyError{ID: id}
	}
	head, rest := sealed[:2+len(id)], sealed[2+len(id):]
	if len(rest) < saltSize {
		return nil, ErrForged
	}
	box, err := r.box(id, rest[:saltSize])
	if err != nil {
		return nil, err
	}
	plain, err := box.Open(nil, nil, rest[saltSize:], context(head, about))
	if err != nil {
		return nil, ErrForged
	}
	return plain, nil
}

// KeyOf returns the ID of the key that a value was sealed with.
func KeyOf(sealed []byte) (string, error) {
	if len(sealed) < 2 || sealed[0] != version || len(sealed) < 2+int(sealed[1]) {
		return "", ErrForged
	}
	return string(sealed[2 : 2+int(sealed[1])]), nil
}

func (r *Ring) box(id string, salt []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, r.keys[id], salt, "signalbox", KeySize)
	if err != nil {
		return nil, fmt.Errorf("deriving a key from %q: %w", id, err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("deriving a key from %q: %w", id, err)
	}
	box, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("sealing with key %q: %w", id, err)
	}
	return box, nil
}

// context returns what is authenticated in addition to the value. Lengths distinguish "a", "bc" from "ab", "c".
func context(head []byte, about []string) []byte {
	out := slices.Clone(head)
	for _, text := range about {
		out = binary.AppendUvarint(out, uint64(len(text)))
		out = append(out, text...)
	}
	return out
}
