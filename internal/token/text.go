package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"hash/crc32"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// Prefix begins every token, so that secret scanners find committed tokens.
const Prefix = "sbx_"

// The parts of a token in bytes, before they become text.
const (
	idBytes     = 10
	secretBytes = 32
)

// The parts of a token as text: five bits per character.
const (
	idLength       = idBytes * 8 / 5
	secretLength   = (secretBytes*8 + 4) / 5
	checksumLength = 7
	textLength     = len(Prefix) + idLength + 1 + secretLength + checksumLength
)

// lower encodes with letters and digits that a double click selects as one word, and whose case does not matter.
func lower() *base32.Encoding {
	return base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
}

// generate returns a new ID and the text of its token.
func generate() (id, text string) {
	random := make([]byte, idBytes+secretBytes)
	_, _ = rand.Read(random) // it never fails: the program crashes where no randomness is available
	id = lower().EncodeToString(random[:idBytes])
	text = Prefix + id + "_" + lower().EncodeToString(random[idBytes:])
	return id, text + checksum(text)
}

func checksum(text string) string {
	return lower().EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))))
}

func hashOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// idOf returns the ID in a token's text, without reading the store. Text that is not a token is an error.
func idOf(text string) (string, error) {
	rest, ok := strings.CutPrefix(text, Prefix)
	if !ok || len(text) != textLength || rest[idLength] != '_' {
		return "", unidentified("the text is not a Signalbox token: tokens begin with %q and have %d characters", Prefix,
			textLength)
	}
	if body := text[:textLength-checksumLength]; checksum(body) != text[textLength-checksumLength:] {
		return "", unidentified("the token was not copied completely: its checksum is wrong")
	}
	return rest[:idLength], nil
}

func unidentified(format string, args ...any) *apperror.Error {
	return apperror.New(apperror.Unauthenticated, apperror.Unidentified, format, args...)
}
