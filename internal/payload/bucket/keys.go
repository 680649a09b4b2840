package bucket

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/signalbox-dev/signalbox/internal/secretfile"
)

// readAgain is how long the content of the key files is used, so that rotated keys need no restart.
const readAgain = time.Minute

// keyFiles provides the credentials that two files hold.
type keyFiles struct {
	access, secret string

	mu   sync.Mutex
	read time.Time
}

var _ credentials.Provider = (*keyFiles)(nil)

// Retrieve implements [credentials.Provider].
func (k *keyFiles) Retrieve() (credentials.Value, error) {
	access, err := readKey(k.access)
	if err != nil {
		return credentials.Value{}, err
	}
	secret, err := readKey(k.secret)
	if err != nil {
		return credentials.Value{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.read = time.Now()
	return credentials.Value{AccessKeyID: access, SecretAccessKey: secret, SignerType: credentials.SignatureV4}, nil
}

// RetrieveWithCredContext implements [credentials.Provider].
func (k *keyFiles) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	return k.Retrieve()
}

// IsExpired implements [credentials.Provider].
func (k *keyFiles) IsExpired() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Since(k.read) > readAgain
}

// readKey returns the content of a file without its line end.
func readKey(file string) (string, error) {
	content, err := secretfile.Read(file)
	if err != nil {
		return "", err
	}
	key := strings.TrimRight(string(content), "\r\n")
	if key == "" {
		return "", fmt.Errorf("file %q is empty: write the key into it", file)
	}
	return key, nil
}
