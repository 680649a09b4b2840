package config

import (
	"github.com/signalbox-dev/signalbox/internal/keyring"
)

// noKey explains how to make a key.
const noKey = "names no key, and a server seals sensitive values: make one with `(umask 077; " + keyring.MakeKey +
	" > signalbox.key)`, keep a copy apart from the database's backups, and set encryption.keys to " +
	"first=/path/of/signalbox.key"

// Ring loads the key ring. A caller of Load without [KeyLayer] gets the violations of keys here.
func (e Encryption) Ring() (*keyring.Ring, error) {
	if len(e.Keys) == 0 {
		return nil, Violations{{Path: "encryption.keys", Message: noKey}}
	}
	ring, err := keyring.Open(e.Active, e.KeyFiles())
	if err != nil {
		return nil, Violations{{Path: "encryption.keys", Message: err.Error()}}
	}
	if !e.Sealing {
		return ring.Opening(), nil
	}
	if e.RequireSealed {
		return ring.Strict(), nil
	}
	return ring, nil
}

// KeyLayer reports keys that cannot be used and a missing key, with all other violations.
func KeyLayer() Layer {
	return Layer{Check: func(cfg *Config) Violations {
		if cfg.Encryption.Validate() != nil {
			return nil //nolint:nilerr // the configuration reports it
		}
		_, err := cfg.Encryption.Ring()
		violations, _ := err.(Violations) //nolint:errorlint // Ring returns no other type
		return violations
	}}
}
