package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"hash/crc32"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/fault"
)

// Prefix begins every token, so that scanners of sources find those that were committed.
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

// lower are letters and digits that a double click selects as one word, and that survive any change of case on the way back.
func lower() *base32.Encoding {
	return base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
}

// generate makes an ID and the text of a token.
func generate() (id, text string) {
	random := make([]byte, idBytes+secretBytes)
	_, _ = rand.Read(random) // it never fails: the program ends where there is no randomness
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

// idOf returns the ID in a token's text, without a look into the store. Text that was never a token is an error.
func idOf(text string) (string, error) {
	rest, ok := strings.CutPrefix(text, Prefix)
	if !ok || len(text) != textLength || rest[idLength] != '_' {
		return "", unidentified("what was sent is no token of Signalbox: they begin with %q and have %d characters", Prefix, textLength)
	}
	if body := text[:textLength-checksumLength]; checksum(body) != text[textLength-checksumLength:] {
		return "", unidentified("the token was not copied completely: its checksum is wrong")
	}
	return rest[:idLength], nil
}

func unidentified(format string, args ...any) *fault.Fault {
	return fault.New(fault.Unauthenticated, fault.Unidentified, format, args...)
}
