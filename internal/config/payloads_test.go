package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/config"
)

func bucket() config.S3 {
	return config.S3{
		Endpoint: "https://s3.example.com:9000", Region: "us-east-1", Bucket: "payloads", Prefix: "signalbox/a/",
		AccessKeyFile: "access", SecretKeyFile: "secret",
	}
}

func TestPayloadsAreValidated(t *testing.T) {
	t.Parallel()
	require.Empty(t, config.Default().Payloads.Validate())
	region := config.S3{Region: "us-east-1"}
	for _, p := range []config.Payloads{
		{Store: "folder", Folder: "/srv/payloads", S3: region},
		{Store: "s3", S3: bucket()},
		{Store: "postgres", DSN: "postgres://signalbox@db/payloads", S3: region},
	} {
		require.Empty(t, p.Validate(), p.Store)
	}
	for violation, p := range map[string]config.Payloads{
		`store: "S3" is not a store of payloads`:          {Store: "S3"},
		"folder: is empty while payloads.store is folder": {Store: "folder"},
		"folder: is set while payloads.store is database": {Store: "database", Folder: "/srv"},
		"dsn: is not a Postgres DSN":                      {Store: "postgres", DSN: "values.db"},
		"dsn: is set while payloads.store is s3": {
			Store: "s3", DSN: "postgres://h/d", S3: bucket()},
		"s3.bucket: is set while payloads.store is folder": {
			Store: "folder", Folder: "/srv", S3: bucket()},
		"s3.endpoint: is empty; write the URL": {Store: "s3"},
		`s3.bucket: "Values" is not the name of a bucket`: {
			Store: "s3", S3: config.S3{Bucket: "Values"}},
		"s3.access_key_file: is empty; name the file":               {Store: "s3"},
		"s3.secret_key_file: is empty; name the file":               {Store: "s3"},
		`s3.endpoint: "s3.example.com" is not the URL of a service`: {Store: "s3", S3: config.S3{Endpoint: "s3.example.com"}},
		`s3.endpoint: "https://h/b" is not the URL of a service`:    {Store: "s3", S3: config.S3{Endpoint: "https://h/b"}},
		`s3.endpoint: "https://k:s@h" is not the URL of a service`:  {Store: "s3", S3: config.S3{Endpoint: "https://k:s@h"}},
		"s3.ca_file: is set while payloads.s3.endpoint uses no TLS": {
			Store: "s3", S3: config.S3{Endpoint: "http://h", CAFile: "ca"}},
		"s3.region: is empty": {Store: "s3"},
		`s3.prefix: "a/../b/" is not a prefix: up to 200 letters, digits, hyp`: {
			Store: "s3", S3: config.S3{Prefix: "a/../b/"}},
		`s3.prefix: "signalbox" is not a prefix`: {Store: "s3", S3: config.S3{Prefix: "signalbox"}},
		`s3.prefix: "/a" is not a prefix`:        {Store: "s3", S3: config.S3{Prefix: "/a"}},
	} {
		require.ErrorContains(t, p.Validate(), violation)
	}
}

// A second database that is the first one would be restored with it.
func TestPayloadsAreInAnotherDatabase(t *testing.T) {
	t.Parallel()
	env := config.Environment{
		"SIGNALBOX_STORE_DRIVER": "postgres", "SIGNALBOX_STORE_DSN": "postgres://signalbox@db/signalbox",
		"SIGNALBOX_PAYLOADS_STORE": "postgres", "SIGNALBOX_PAYLOADS_DSN": "postgres://signalbox@db/signalbox",
	}
	_, err := config.Load(config.Options{Env: env})
	require.ErrorContains(t, err, "payloads.dsn")
	require.ErrorContains(t, err, "is the same database as store.dsn")
	env["SIGNALBOX_PAYLOADS_DSN"] = "postgres://signalbox@db/payloads"
	_, err = config.Load(config.Options{Env: env})
	require.NoError(t, err)
}

// A folder that does not exist may be a disk that is not mounted; a password of its database is a secret like each
// other.
func TestPayloadsInAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	load := func(content string) (*config.Config, error) {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		return config.Load(config.Options{Env: config.Environment{config.FileVariable: file}})
	}
	root := t.TempDir()
	cfg, err := load("payloads: {store: folder, folder: " + root + "}\n")
	require.NoError(t, err)
	require.Equal(t, root, cfg.Payloads.Folder)
	_, err = load("payloads: {store: folder, folder: " + root + "/missing}\n")
	require.ErrorContains(t, err, "payloads.folder")
	_, err = load("payloads: {store: postgres, dsn: \"postgres://signalbox:hidden@db/payloads\"}\n")
	require.ErrorContains(t, err, "payloads.dsn")
	require.ErrorContains(t, err, "holds a password in plain text")
}
