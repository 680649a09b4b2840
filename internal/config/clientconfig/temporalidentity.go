package clientconfig

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"

	"github.com/signalbox-dev/signalbox/internal/config"
)

// TemporalIdentity returns a hash of the address and of the content of every credential, which does not disclose them.
// When it changes, the files were rotated and a new client is needed. It reads a few small files, so it may be called
// every few seconds; its errors are those of files that cannot be read now.
func TemporalIdentity(t config.Temporal) (string, error) {
	h := sha256.New()
	write := func(content []byte) {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(content))) // so that parts cannot run into each other
		_, _ = h.Write(length[:])                                   // never fails
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
