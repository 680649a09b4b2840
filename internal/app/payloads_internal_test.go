package app

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

func load(t *testing.T, env config.Environment) *config.Config {
	t.Helper()
	cfg, err := config.Load(config.Options{Env: env})
	require.NoError(t, err)
	return cfg
}

func TestDatabaseOfPayloadsIsNotChecked(t *testing.T) {
	t.Parallel()
	require.Empty(t, CheckPayloads(t.Context(), config.Default()))
	created, err := MigratePayloads(t.Context(), config.Default())
	require.NoError(t, err)
	require.Empty(t, created)
}

func TestFolderOfPayloadsIsChecked(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "mounted")
	require.NoError(t, os.Mkdir(root, 0o700))
	cfg := load(t, config.Environment{"SIGNALBOX_PAYLOADS_STORE": "folder", "SIGNALBOX_PAYLOADS_FOLDER": root})
	require.Empty(t, CheckPayloads(t.Context(), cfg))
	require.NoError(t, os.Remove(root))
	problems := CheckPayloads(t.Context(), cfg)
	require.Len(t, problems, 1)
	require.ErrorContains(t, problems, "payloads.store (folder): open the folder of payloads")
	require.True(t, problems[0].Heals, "a server starts when the disk is mounted again")
}

func TestBucketOfPayloadsIsChecked(t *testing.T) {
	t.Parallel()
	memory := s3mem.New()
	service := httptest.NewServer(gofakes3.New(memory).Server())
	t.Cleanup(service.Close)
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte("key"), 0o600))
	cfg := load(t, config.Environment{
		"SIGNALBOX_PAYLOADS_STORE": "s3", "SIGNALBOX_PAYLOADS_S3_ENDPOINT": service.URL,
		"SIGNALBOX_PAYLOADS_S3_BUCKET":     "payloads",
		"SIGNALBOX_PAYLOADS_S3_PATH_STYLE": "true", "SIGNALBOX_PAYLOADS_S3_ACCESS_KEY_FILE": key,
		"SIGNALBOX_PAYLOADS_S3_SECRET_KEY_FILE": key,
	})
	problems := CheckPayloads(t.Context(), cfg)
	require.Len(t, problems, 1)
	require.ErrorContains(t, problems, `bucket "payloads" at `+service.URL+": the bucket does not exist: create it")
	require.NoError(t, memory.CreateBucket("payloads"))
	require.Empty(t, CheckPayloads(t.Context(), cfg))
	service.Close()
	require.ErrorContains(t, CheckPayloads(t.Context(), cfg), "connection refused")
}

func TestPostgresOfPayloadsIsChecked(t *testing.T) {
	t.Parallel()
	env := config.Environment{
		"SIGNALBOX_PAYLOADS_STORE": "postgres", "SIGNALBOX_PAYLOADS_DSN": storetest.Postgres(t),
		"SIGNALBOX_STORE_AUTO_MIGRATE": "false",
	}
	cfg := load(t, env)
	require.ErrorContains(t, CheckPayloads(t.Context(), cfg), `has no table payloads: run "signalbox migrate up"`)
	env["SIGNALBOX_STORE_AUTO_MIGRATE"] = "true"
	require.Empty(t, CheckPayloads(t.Context(), load(t, env)), "a server creates it")
	created, err := MigratePayloads(t.Context(), cfg)
	require.NoError(t, err)
	require.Contains(t, created, "the database of payloads, postgres at 127.0.0.1")
	require.Empty(t, CheckPayloads(t.Context(), cfg))
	created, err = MigratePayloads(t.Context(), cfg)
	require.NoError(t, err)
	require.Empty(t, created)
}
