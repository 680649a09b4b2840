package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/config"
)

func TestMigrationIsValidated(t *testing.T) {
	t.Parallel()
	require.Empty(t, config.Default().Migration.Validate())
	violations := config.Migration{Project: "My Shop", Namespace: "a/b", Interval: time.Millisecond}.Validate()
	require.Len(t, violations, 3, "all at once: %v", violations)
	require.ErrorContains(t, violations, `"My Shop" is not a project's name`)
	require.ErrorContains(t, violations, `"a/b" cannot stand before a workflow's name`)
	require.ErrorContains(t, violations, "1ms is too short; give at least 1s")
}

func TestMigrationPasswordIsReference(t *testing.T) {
	t.Parallel()
	_, err := load(t, "migration: {from: 'postgres://me:open@h/d'}\n", nil)
	require.ErrorContains(t, err, "migration.from")
	require.ErrorContains(t, err, "password in plain text")
	cfg, err := load(t, "migration: {from: 'postgres://me:${env:PW}@h/d'}\n", config.Environment{"PW": "p@ss"})
	require.NoError(t, err)
	require.Equal(t, "postgres://me:p%40ss@h/d", cfg.Migration.From.Reveal())
}
