package temporalconfig

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"

	"github.com/signalbox-dev/signalbox/internal/config"
)

// Identity names what a connection is made of: where to, and the content of every credential, as a hash that gives none of it
// away. When it changes, the files were rotated and a new client is due. It reads a handful of small files, so it may be
// asked for every few seconds; an error is that of a file that cannot be read now.
func Identity(t config.Temporal) (string, error) {
	h := sha256.New()
	write := func(content []byte) {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(content))) // so that no two parts can flow into each other
		_, _ = h.Write(length[:])                                   // a hash takes everything
		_, _ = h.Write(content)
	}
	for _, text := range []string{
		t.Address, t.Namespace, t.TLS.ServerName, strconv.FormatBool(t.TLSEnabled()),
		t.Profile.Authority, strconv.FormatBool(t.Profile.DisableHostVerification),
	} {
		write([]byte(text))
	}
	files := []struct {
		key, name string
		given     []byte
	}{
		{apiKeyKey, t.APIKeyFile, []byte(t.Profile.APIKey.Reveal())},
		{certKey, t.TLS.CertFile, t.Profile.CertPEM},
		{keyKey, t.TLS.KeyFile, []byte(t.Profile.KeyPEM.Reveal())},
		{caKey, t.TLS.CAFile, t.Profile.CAPEM},
	}
	for _, f := range files {
		content := f.given
		if f.name != "" {
			var err error
			if content, err = os.ReadFile(f.name); err != nil {
				return "", fmt.Errorf("read Temporal's credentials (%s): %w", f.key, err)
			}
		}
		write(content)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
