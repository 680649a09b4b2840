package keyring

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"

	"github.com/signalbox-dev/signalbox/internal/secretfile"
)

// maxID is the longest ID of a key, in bytes.
const maxID = 64

// MakeKey is the command that makes a key.
const MakeKey = "head -c 32 /dev/urandom | base64"

// KeyFile names the file of a key: 32 random bytes in base64.
type KeyFile struct{ ID, File string }

// Open returns a ring of the keys in files. An empty active selects the only key. The error has all violations of all
// files.
func Open(active string, files []KeyFile) (*Ring, error) {
	if active == "" && len(files) == 1 {
		active = files[0].ID
	}
	keys := make(map[string][]byte, len(files))
	var errs []error
	for _, f := range files {
		key, err := read(f)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for id, other := range keys {
			if bytes.Equal(other, key) {
				errs = append(errs, fmt.Errorf("keys %q and %q are the same; make a new one with `%s`", id, f.ID, MakeKey))
			}
		}
		keys[f.ID] = key
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return New(active, keys)
}

func read(f KeyFile) ([]byte, error) {
	text, err := secretfile.Read(f.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("key %q cannot be read: %w; make one with `%s`", f.ID, err, MakeKey)
	}
	if err != nil {
		return nil, fmt.Errorf("key %q cannot be used: %w", f.ID, err)
	}
	key, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil {
		return nil, fmt.Errorf("key %q in %q is not base64; make one with `%s`", f.ID, f.File, MakeKey)
	}
	if len(key) != KeySize {
		return nil, fmt.Errorf("key %q in %q has %d bytes, not %d; make one with `%s`", f.ID, f.File, len(key), KeySize,
			MakeKey)
	}
	return key, nil
}

// Random returns a ring of one new random key that is not stored anywhere.
func Random(id string) *Ring {
	key := make([]byte, KeySize)
	_, _ = rand.Read(key) // never fails, according to its documentation
	return &Ring{active: id, keys: map[string][]byte{id: key}}
}

// Generate returns the content of a file with a new key.
func Generate() []byte {
	key := make([]byte, KeySize)
	_, _ = rand.Read(key) // never fails, according to its documentation
	return append(base64.StdEncoding.AppendEncode(nil, key), '\n')
}
