package dev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/config/sealconfig"
	"github.com/signalbox-dev/signalbox/internal/seal"
)

const (
	// keyID names the key that this command makes, keyFile is where it keeps it in the data folder.
	keyID   = "dev"
	keyFile = "encryption.key"
)

// keys are those that the configuration names, else one that is made at the first start: it stays in the data folder, and without
// one it goes with the data.
func (d *dev) keys(e config.Encryption) (*seal.Ring, error) {
	switch {
	case len(e.Keys) > 0:
		return sealconfig.Ring(e)
	case d.flags.dataDir == "":
		return seal.Random(keyID), nil
	}
	path := filepath.Join(d.flags.dataDir, keyFile)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(path, seal.Generate(), 0o600); err != nil {
			return nil, fmt.Errorf("making a key: %w", err)
		}
	}
	return seal.Open(keyID, []seal.KeyFile{{ID: keyID, File: path}})
}
