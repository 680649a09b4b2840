package dev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/keyring"
)

const (
	// keyID is the name of the generated key, keyFile its file in the data folder.
	keyID   = "dev"
	keyFile = "encryption.key"
)

// keys returns the keys of the configuration, or a key generated at the first start. That key is stored in the data
// folder; without a data folder it is discarded with the data.
func (d *dev) keys(e config.Encryption) (*keyring.Ring, error) {
	switch {
	case len(e.Keys) > 0:
		return e.Ring()
	case d.flags.dataDir == "":
		return keyring.Random(keyID), nil
	}
	path := filepath.Join(d.flags.dataDir, keyFile)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(path, keyring.Generate(), 0o600); err != nil {
			return nil, fmt.Errorf("generating a key: %w", err)
		}
	}
	return keyring.Open(keyID, []keyring.KeyFile{{ID: keyID, File: path}})
}
