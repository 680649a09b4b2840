package clientconfig_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/config/clientconfig"
)

func layers() []config.Layer { return []config.Layer{clientconfig.TemporalLayer(time.Now)} }

func load(t *testing.T, env config.Environment) *config.Config {
	t.Helper()
	cfg, err := config.Load(config.Options{Env: env, Layers: layers()})
	require.NoError(t, err)
	return cfg
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// keyPair returns the paths of a self-signed certificate and its key.
func keyPair(t *testing.T) (certPath, keyPath string) {
	t.Helper()
	return keyPairOf(t, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
}

func keyPairOf(t *testing.T, notBefore, notAfter time.Time) (certPath, keyPath string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: notBefore, NotAfter: notAfter}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	return write(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})))
}

func TestOurSettingsOverrideTemporalsVariables(t *testing.T) {
	t.Parallel()
	env := config.Environment{
		"TEMPORAL_ADDRESS": "temporal:7233", "TEMPORAL_NAMESPACE": "theirs", "SIGNALBOX_TEMPORAL_NAMESPACE": "ours"}
	cfg := load(t, env)
	require.Equal(t, "temporal:7233", cfg.Temporal.Address)
	require.Equal(t, "ours", cfg.Temporal.Namespace)

	empty := load(t, config.Environment{"TEMPORAL_ADDRESS": ""})
	require.Equal(t, config.Default(), empty, "an empty variable has no effect")

	_, err := config.Load(config.Options{Env: config.Environment{"TEMPORAL_ADDRESS": "nonsense"}, Layers: layers()})
	require.ErrorContains(t, err, `temporal.address (TEMPORAL_ADDRESS): "nonsense"`)
}

func TestProfileOfTemporal(t *testing.T) {
	t.Parallel()
	file := write(t, "temporal.toml", `
[profile.prod]
address = "prod.example:7233"
namespace = "orders"
api_key = "secret-key"
authority = "edge.example"
[profile.prod.grpc_meta]
x-team = "orders"
`)
	cfg := load(t, config.Environment{"TEMPORAL_CONFIG_FILE": file, "TEMPORAL_PROFILE": "prod"})
	options, err := clientconfig.Temporal(cfg.Temporal)
	require.NoError(t, err)
	require.Equal(t, "prod.example:7233", options.HostPort)
	require.Equal(t, "orders", options.Namespace)
	require.NotNil(t, options.Credentials)
	require.NotNil(t, options.ConnectionOptions.TLS, "an API key turns TLS on")
	require.Equal(t, "edge.example", options.ConnectionOptions.Authority)
	headers, err := options.HeadersProvider.GetHeaders(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]string{"x-team": "orders"}, headers)

	_, err = config.Load(config.Options{
		Env:    config.Environment{"TEMPORAL_CONFIG_FILE": file, "TEMPORAL_PROFILE": "nope"},
		Layers: layers(),
	})
	require.ErrorContains(t, err, "read Temporal's own configuration")
	require.ErrorContains(t, err, "nope")
}

func TestTLS(t *testing.T) {
	t.Parallel()
	plain, err := clientconfig.Temporal(config.Default().Temporal)
	require.NoError(t, err)
	require.True(t, plain.ConnectionOptions.TLSDisabled)

	cert, key := keyPair(t)
	tls := config.Default().Temporal
	tls.TLS = config.TLS{CertFile: cert, KeyFile: key, CAFile: cert, ServerName: "temporal.example"}
	options, err := clientconfig.Temporal(tls)
	require.NoError(t, err)
	conf := options.ConnectionOptions.TLS
	require.Equal(t, "temporal.example", conf.ServerName)
	require.NotNil(t, conf.RootCAs)
	got, err := conf.GetClientCertificate(nil)
	require.NoError(t, err)
	require.NotEmpty(t, got.Certificate)

	require.NoError(t, os.WriteFile(cert, []byte("rotated badly"), 0o600))
	_, err = conf.GetClientCertificate(nil)
	require.ErrorContains(t, err, "load the client certificate for Temporal", "the files are read per handshake")

	tls.TLS.Disabled = true
	options, err = clientconfig.Temporal(tls)
	require.NoError(t, err)
	require.True(t, options.ConnectionOptions.TLSDisabled)
	require.Nil(t, options.ConnectionOptions.TLS)
}

func TestInlineCertificatesOfTemporalsVariables(t *testing.T) {
	t.Parallel()
	certPath, keyPath := keyPair(t)
	cert, err := os.ReadFile(certPath)
	require.NoError(t, err)
	key, err := os.ReadFile(keyPath)
	require.NoError(t, err)
	cfg := load(t, config.Environment{
		"TEMPORAL_TLS_CLIENT_CERT_DATA": string(cert), "TEMPORAL_TLS_CLIENT_KEY_DATA": string(key),
		"TEMPORAL_TLS_SERVER_CA_CERT_DATA": string(cert),
	})
	options, err := clientconfig.Temporal(cfg.Temporal)
	require.NoError(t, err)
	require.NotNil(t, options.ConnectionOptions.TLS.RootCAs)
	_, err = options.ConnectionOptions.TLS.GetClientCertificate(nil)
	require.NoError(t, err)
	require.True(t, load(t, config.Environment{"TEMPORAL_TLS": "false", "TEMPORAL_API_KEY": "k"}).Temporal.TLS.Disabled)
}

func TestCredentialFilesAreReadAtStart(t *testing.T) {
	t.Parallel()
	temporal := config.Default().Temporal
	temporal.APIKeyFile = write(t, "key", "  \n")
	_, err := clientconfig.Temporal(temporal)
	require.ErrorContains(t, err, "is empty")
	temporal.APIKeyFile = write(t, "key", "abc\n")
	options, err := clientconfig.Temporal(temporal)
	require.NoError(t, err)
	require.NotNil(t, options.Credentials)
	require.NotNil(t, options.ConnectionOptions.TLS)

	temporal.TLS.CAFile = write(t, "ca.pem", "not PEM")
	_, err = clientconfig.Temporal(temporal)
	require.ErrorContains(t, err, "no certificate in PEM form found")
}
