package clientconfig

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"os"
	"strings"

	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/secretfile"
)

// Temporal returns the client's address, namespace, TLS, credentials and headers. Certificates and the API
// key are read again when they are used (per handshake, per call), so rotated files need no restart;
// they are also read once here, so that creating a client reports a wrong one. Authorities are only read here.
func Temporal(t config.Temporal) (client.Options, error) {
	options := client.Options{HostPort: t.Address, Namespace: t.Namespace}
	options.ConnectionOptions.Authority = t.Profile.Authority
	if len(t.Profile.Headers) > 0 {
		options.HeadersProvider = headers(maps.Clone(t.Profile.Headers))
	}
	switch {
	case t.APIKeyFile != "":
		if _, err := readKey(t.APIKeyFile); err != nil {
			return client.Options{}, err
		}
		options.Credentials = client.NewAPIKeyDynamicCredentials(func(context.Context) (string, error) {
			return readKey(t.APIKeyFile)
		})
	case t.Profile.APIKey != "":
		options.Credentials = client.NewAPIKeyStaticCredentials(t.Profile.APIKey.Reveal())
	}
	if !t.TLSEnabled() {
		options.ConnectionOptions.TLSDisabled = true
		return options, nil
	}
	var err error
	options.ConnectionOptions.TLS, err = temporalTLS(t)
	return options, err
}

// ReloadTemporal returns a function that makes the options again from the current content of the files.
func ReloadTemporal(t config.Temporal) func() (client.Options, error) {
	return func() (client.Options, error) { return Temporal(t) }
}

func readKey(path string) (string, error) {
	content, err := secretfile.Read(path)
	if err != nil {
		return "", fmt.Errorf("read Temporal's API key (temporal.api_key_file): %w", err)
	}
	key := strings.TrimSpace(string(content))
	if key == "" {
		return "", fmt.Errorf("read Temporal's API key (temporal.api_key_file): %q is empty", path)
	}
	return key, nil
}

func temporalTLS(t config.Temporal) (*tls.Config, error) {
	conf := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.TLS.ServerName,
		InsecureSkipVerify: t.Profile.DisableHostVerification, //nolint:gosec // only as Temporal's own configuration says
	}
	pair := keyPair(t)
	if pair != nil {
		if _, err := pair(); err != nil {
			return nil, err
		}
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair() }
	}
	pool, err := authorities(t)
	if err != nil {
		return nil, err
	}
	conf.RootCAs = pool
	return conf, nil
}

// keyPair returns a function that loads the client's certificate, or nil where none is configured.
func keyPair(t config.Temporal) func() (*tls.Certificate, error) {
	load := func() (tls.Certificate, error) { return tls.LoadX509KeyPair(t.TLS.CertFile, t.TLS.KeyFile) }
	if t.TLS.CertFile == "" {
		if len(t.Profile.CertPEM) == 0 {
			return nil
		}
		load = func() (tls.Certificate, error) {
			return tls.X509KeyPair(t.Profile.CertPEM, []byte(t.Profile.KeyPEM.Reveal()))
		}
	}
	return func() (*tls.Certificate, error) {
		cert, err := load()
		if err != nil {
			return nil, fmt.Errorf("load the client certificate for Temporal (temporal.tls.cert_file %q, key_file %q): %w",
				t.TLS.CertFile, t.TLS.KeyFile, err)
		}
		return &cert, nil
	}
}

// authorities returns nil, which means the system's authorities, where none are configured.
func authorities(t config.Temporal) (*x509.CertPool, error) {
	pem := t.Profile.CAPEM
	if t.TLS.CAFile != "" {
		content, err := os.ReadFile(t.TLS.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the authorities for Temporal (temporal.tls.ca_file): %w", err)
		}
		pem = content
	}
	if len(pem) == 0 {
		return nil, nil //nolint:nilnil // crypto/tls's own spelling of "the system's pool"
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read the authorities for Temporal (temporal.tls.ca_file %q): %w", t.TLS.CAFile,
			errNoCertificate)
	}
	return pool, nil
}

type headers map[string]string

// GetHeaders implements the SDK's HeadersProvider.
func (h headers) GetHeaders(context.Context) (map[string]string, error) { return h, nil }
