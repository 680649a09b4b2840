// Package sealconfig makes the ring of keys that a configuration names.
//
//	layers := []config.Layer{sealconfig.Layer()} // so that all that is wrong with keys is told beside everything else
//	ring, err := sealconfig.Ring(cfg.Encryption)
//
// It reads the files of keys and keeps nothing.
package sealconfig

import (
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/seal"
)

// noKey is what to do where there is no key.
const noKey = "names no key, and a server seals sensitive values: make one with `(umask 077; " + seal.MakeKey +
	" > signalbox.key)`, keep a copy apart from the database's backups, and set encryption.keys to first=/path/of/signalbox.key"

// Ring opens the ring of a configuration.
func Ring(e config.Encryption) (*seal.Ring, error) {
	if len(e.Keys) == 0 {
		return nil, config.Problems{{Path: "encryption.keys", Message: noKey}}
	}
	var files []seal.KeyFile
	for _, f := range e.KeyFiles() {
		files = append(files, seal.KeyFile(f))
	}
	ring, err := seal.Open(e.Active, files)
	if err != nil {
		return nil, config.Problems{{Path: "encryption.keys", Message: err.Error()}}
	}
	if !e.Sealing {
		return ring.Opening(), nil
	}
	if e.RequireSealed {
		return ring.Strict(), nil
	}
	return ring, nil
}

// Layer reports, with everything else that is wrong, keys that cannot be used, and that there is none.
func Layer() config.Layer {
	return config.Layer{
		Apply: func(config.Environment, *config.Config) (map[string]string, error) { return nil, nil }, //nolint:nilnil // it sets nothing
		Check: func(cfg *config.Config) config.Problems {
			if cfg.Encryption.Validate() != nil {
				return nil //nolint:nilerr // the configuration reports it itself
			}
			_, err := Ring(cfg.Encryption)
			problems, _ := err.(config.Problems) //nolint:errorlint // Ring gives nothing else
			return problems
		},
	}
}
