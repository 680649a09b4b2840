package payload

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// maxName is the maximum length of a part of a path: common file systems allow 255 bytes.
const maxName = 240

// Path returns the path of a value in a folder or a bucket: SHARD/RUN/DIGEST. A shard is the first byte of the SHA-256
// of the run's ID, so that no folder has an entry for each run. Folders and buckets have the same paths, so that values
// can be copied from one to the other.
func Path(runID, digest string) (string, error) {
	run, err := RunPath(runID)
	if err != nil {
		return "", err
	}
	name, err := escape(digest)
	if err != nil {
		return "", fmt.Errorf("digest %q: %w", digest, err)
	}
	return run + "/" + name, nil
}

// RunPath returns the path that all values of a run have in common: SHARD/RUN.
func RunPath(runID string) (string, error) {
	name, err := escape(runID)
	if err != nil {
		return "", fmt.Errorf("run %q: %w", runID, err)
	}
	sum := sha256.Sum256([]byte(runID))
	return hex.EncodeToString(sum[:1]) + "/" + name, nil
}

// Shards returns all shards in order.
func Shards() []string {
	shards := make([]string, 0, 1<<8)
	for b := range 1 << 8 {
		shards = append(shards, hex.EncodeToString([]byte{byte(b)}))
	}
	return shards
}

// RunOf returns the run of the path SHARD/RUN; false for a path of something else.
func RunOf(path string) (runID string, ok bool) {
	_, name, _ := strings.Cut(path, "/")
	runID, err := url.PathUnescape(name)
	if err != nil {
		return "", false
	}
	again, err := RunPath(runID)
	return runID, err == nil && again == path
}

// escape returns a text as a file name: other bytes than letters, digits, hyphens and underscores are replaced by %XX,
// as file systems, shells and buckets treat some of them differently.
func escape(text string) (string, error) {
	var name strings.Builder
	for _, b := range []byte(text) {
		if b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '-' || b == '_' {
			name.WriteByte(b)
			continue
		}
		fmt.Fprintf(&name, "%%%02X", b)
	}
	switch {
	case name.Len() == 0:
		return "", errors.New("an empty text is not a file name")
	case name.Len() > maxName:
		return "", fmt.Errorf("it has %d bytes as a file name, more than the limit of %d", name.Len(), maxName)
	}
	return name.String(), nil
}
