// Package sealconfig loads the key ring that a configuration names.
//
//	layers := []config.Layer{sealconfig.Layer()} // reports violations of keys with all other violations
//	ring, err := sealconfig.Ring(cfg.Encryption)
//
// It reads the key files and keeps no state.
package sealconfig

import (
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/keyring"
)

// noKey explains how to make a key.
const noKey = "names no key, and a server seals sensitive values: make one with `(umask 077; " + keyring.MakeKey +
	" > signalbox.key)`, keep a copy apart from the database's backups, and set encryption.keys to " +
	"first=/path/of/signalbox.key"

// Ring loads the key ring of a configuration.
func Ring(e config.Encryption) (*keyring.Ring, error) {
	if len(e.Keys) == 0 {
		return nil, config.Violations{{Path: "encryption.keys", Message: noKey}}
	}
	var files []keyring.KeyFile
	for _, f := range e.KeyFiles() {
		files = append(files, keyring.KeyFile(f))
	}
	ring, err := keyring.Open(e.Active, files)
	if err != nil {
		return nil, config.Violations{{Path: "encryption.keys", Message: err.Error()}}
	}
	if !e.Sealing {
		return ring.Opening(), nil
	}
	if e.RequireSealed {
		return ring.Strict(), nil
	}
	return ring, nil
}

// Layer reports keys that cannot be used and a missing key, with all other violations.
func Layer() config.Layer {
	return config.Layer{
		Apply: func(config.Environment, *config.Config) (map[string]string, error) {
			return nil, nil
		}, //nolint:nilnil // it sets nothing
		Check: func(cfg *config.Config) config.Violations {
			if cfg.Encryption.Validate() != nil {
				return nil //nolint:nilerr // the configuration reports it
			}
			_, err := Ring(cfg.Encryption)
			violations, _ := err.(config.Violations) //nolint:errorlint // Ring returns no other type
			return violations
		},
	}
}
