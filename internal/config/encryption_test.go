package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/keyring"
)

func TestKeysAreAMappingOrAList(t *testing.T) {
	t.Parallel()
	want := []keyring.KeyFile{{ID: "old", File: "/k/old.key"}, {ID: "2026-11", File: "/k/new=er.key"}}
	for _, file := range []string{
		"encryption: {keys: {old: /k/old.key, 2026-11: /k/new=er.key}, active: 2026-11}",
		"encryption: {keys: [old=/k/old.key, 2026-11=/k/new=er.key], active: 2026-11}",
	} {
		cfg, err := load(t, file, nil)
		require.NoError(t, err)
		require.Equal(t, want, cfg.Encryption.KeyFiles())
		require.True(t, cfg.Encryption.Sealing)
	}
	cfg, err := load(t, "", config.Environment{
		"SIGNALBOX_ENCRYPTION_KEYS": "old=/k/old.key,2026-11=/k/new=er.key", "SIGNALBOX_ENCRYPTION_ACTIVE": "old"})
	require.NoError(t, err)
	require.Equal(t, want, cfg.Encryption.KeyFiles())
}

func TestInvalidEncryption(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"{keys: [/k/old.key]}":                       `encryption.keys (signalbox.yaml:1): "/k/old.key" names no file; write ID=FILE, for example 2026-11=/etc/signalbox/2026-11.key`,
		"{keys: {a b: /k}}":                          `encryption.keys (signalbox.yaml:1): "a b" is not an ID: letters, digits, dots, hyphens and underscores, at most 64`,
		"{keys: [a=/k, a=/l]}":                       `encryption.keys (signalbox.yaml:1): "a" is there twice; a key and its ID belong together for ever, so give a new key a new ID`,
		"{keys: {a: /k, b: /l}}":                     `encryption.active (default): is empty while there are 2 keys; name the one that seals from now on`,
		"{keys: {a: /k}, active: b}":                 `encryption.active (signalbox.yaml:1): "b" is not one of encryption.keys (a)`,
		"{sealing: false, require_sealed: true}":     `encryption.require_sealed (signalbox.yaml:1): is true while encryption.sealing is false; this process would refuse what it writes itself`,
		"{codec_endpoint: true, codec_origins: [x]}": `encryption.codec_origins (signalbox.yaml:1): "x" is not an origin; write scheme, host and port, for example http://127.0.0.1:8233`,
		"{codec_origins: ['http://h:1']}":            `encryption.codec_origins (signalbox.yaml:1): are given while encryption.codec_endpoint is false; set it to true, or leave them out`,
	} {
		_, err := load(t, "encryption: "+file, nil)
		require.Equal(t, []string{want}, violations(t, err), file)
	}
}
