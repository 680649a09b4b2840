package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/config/schema"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]schema.Size{
		"0": 0, "17": 17, "17B": 17, "512KiB": 512 << 10, "4 MiB": 4 << 20, "1GiB": 1 << 30, "2KB": 2000, "3MB": 3e6,
		"1GB": 1e9} {
		got, err := schema.ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := schema.ParseSize(got.String())
		require.NoError(t, err)
		require.Equal(t, want, again, "String is exact")
	}
	for _, text := range []string{"", "KiB", "-1", "1.5MiB", "9223372036854775807KiB", "12 parsecs"} {
		_, err := schema.ParseSize(text)
		require.ErrorContains(t, err, "is not a size", text)
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	secret := struct{ DSN schema.Secret }{"postgres://u:hunter2@h/d"}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("connecting", "dsn", secret.DSN)
	text, err := json.Marshal(secret)
	require.NoError(t, err)
	for _, shown := range []string{
		log.String(), string(text), fmt.Sprint(secret), fmt.Sprintf("%#v %q %s", secret, secret.DSN, secret.DSN)} {
		require.Contains(t, shown, redact.Mark)
		require.NotContains(t, shown, "hunter2")
	}
}
