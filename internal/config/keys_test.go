package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/keyring"
)

func TestMissingKeyReportsHowToMakeOne(t *testing.T) {
	t.Parallel()
	_, err := config.Load(config.Options{Layers: []config.Layer{config.KeyLayer()}})
	require.ErrorContains(t, err, "encryption.keys (default): names no key")
	require.ErrorContains(t, err, "head -c 32 /dev/urandom | base64")
	_, err = config.Encryption{}.Ring()
	require.ErrorContains(t, err, "head -c 32 /dev/urandom | base64")
}

func TestRing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.key")
	require.NoError(t, os.WriteFile(path, keyring.Generate(), 0o600))
	env := config.Environment{"SIGNALBOX_ENCRYPTION_KEYS": "a=" + path}
	cfg, err := config.Load(config.Options{Env: env, Layers: []config.Layer{config.KeyLayer()}})
	require.NoError(t, err)
	ring, err := cfg.Encryption.Ring()
	require.NoError(t, err)
	require.Equal(t, "a", ring.Active())
	require.True(t, ring.Seals())
	cfg.Encryption.Sealing = false
	ring, err = cfg.Encryption.Ring()
	require.NoError(t, err)
	require.False(t, ring.Seals())
	require.False(t, ring.RequiresSealed())
	cfg.Encryption.Sealing, cfg.Encryption.RequireSealed = true, true
	ring, err = cfg.Encryption.Ring()
	require.NoError(t, err)
	require.True(t, ring.Seals())
	require.True(t, ring.RequiresSealed())

	require.NoError(t, os.WriteFile(path, []byte("nonsense"), 0o600))
	_, err = config.Load(config.Options{Env: env, Layers: []config.Layer{config.KeyLayer()}})
	require.ErrorContains(t, err, "encryption.keys (SIGNALBOX_ENCRYPTION_KEYS): key \"a\" in ")
}
