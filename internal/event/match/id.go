package match

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"
)

// derive makes a UUID (version 8) of what something is for, so that whoever computes it again gets the same. Each part
// counts with its length: no two lists of parts run into one.
func derive(what string, parts ...string) string {
	data := []byte("signalbox")
	for _, part := range append([]string{what}, parts...) {
		data = binary.BigEndian.AppendUint32(data, uint32(len(part))) //nolint:gosec // attributes are short
		data = append(data, part...)
	}
	const version = 8
	return uuid.NewHash(sha256.New(), uuid.Nil, data, version).String()
}
