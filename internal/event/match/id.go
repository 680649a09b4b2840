package match

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"
)

// derive returns a UUID (version 8) computed from its arguments, so that every process computes the same one. Each part
// is prefixed with its length, so that two different lists of parts never give the same input.
func derive(what string, parts ...string) string {
	data := []byte("signalbox")
	for _, part := range append([]string{what}, parts...) {
		data = binary.BigEndian.AppendUint32(data, uint32(len(part))) //nolint:gosec // attributes are short
		data = append(data, part...)
	}
	const version = 8
	return uuid.NewHash(sha256.New(), uuid.Nil, data, version).String()
}
