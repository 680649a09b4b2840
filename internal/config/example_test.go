package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/config/schema"
)

func TestExampleLoadsAndNamesEveryKey(t *testing.T) {
	t.Parallel()
	const path = "../../docs/examples/signalbox.yaml"
	cfg, err := config.Load(config.Options{Env: config.Environment{"SIGNALBOX_CONFIG": path, "DATABASE_PASSWORD": "x"}})
	require.NoError(t, err)
	want := config.Default()
	want.Store.Driver, want.Store.DSN = "postgres", "postgres://signalbox:x@127.0.0.1:5432/signalbox"
	want.Encryption.Keys, want.Encryption.Active = []string{"2026-11=/etc/signalbox/2026-11.key"}, "2026-11"
	want.Redis.URL = "redis://127.0.0.1:6379"
	require.Equal(t, want, cfg)

	content, err := os.ReadFile(path)
	require.NoError(t, err)
	var tree map[string]any
	require.NoError(t, yaml.Unmarshal(content, &tree))
	keys := schema.Of(config.Default()).ByPath
	require.NotEmpty(t, keys)
	for key := range keys {
		node := any(tree)
		for part := range strings.SplitSeq(key, ".") {
			mapping, ok := node.(map[string]any)
			require.True(t, ok, key)
			require.Contains(t, mapping, part, "the example lacks %s", key)
			node = mapping[part]
		}
	}
}
