package clientconfig

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/secretfile"
	"github.com/signalbox-dev/signalbox/lease/redislease"
)

// Redis returns the options of package redislease. It returns an error for a file that cannot be used.
func Redis(r config.Redis) (redislease.Options, error) {
	options := redislease.Options{
		URL: r.URL.Reveal(), Addresses: r.Addresses, MasterName: r.MasterName, Cluster: r.Mode == config.RedisCluster,
		Username: r.Username, Timeout: r.Timeout, Prefix: r.Prefix,
	}
	if r.PasswordFile != "" {
		if _, err := readPassword(r.PasswordFile); err != nil {
			return redislease.Options{}, err
		}
		options.Password = func() (string, error) { return readPassword(r.PasswordFile) }
	}
	if !r.TLSEnabled() {
		return options, nil
	}
	var err error
	options.TLS, err = redisTLS(r.TLS)
	return options, err
}

var errEmpty = errors.New("the file is empty")

func readPassword(path string) (string, error) {
	content, err := secretfile.Read(path)
	if err == nil && len(bytes.TrimSpace(content)) == 0 {
		err = errEmpty
	}
	if err != nil {
		return "", fmt.Errorf("read the password of Redis (redis.password_file %q): %w", path, err)
	}
	return strings.TrimRight(string(content), "\r\n"), nil
}

func redisTLS(t config.RedisTLS) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CertFile != "" {
		if _, err := readPair(t); err != nil {
			return nil, err
		}
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return readPair(t) }
	}
	if t.CAFile == "" {
		return conf, nil
	}
	pem, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the authorities for Redis (redis.tls.ca_file): %w", err)
	}
	conf.RootCAs = x509.NewCertPool()
	if !conf.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read the authorities for Redis (redis.tls.ca_file %q): %w", t.CAFile, errNoCertificate)
	}
	return conf, nil
}

func readPair(t config.RedisTLS) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("load the client certificate for Redis (redis.tls.cert_file %q, key_file %q): %w", t.CertFile,
			t.KeyFile, err)
	}
	return &pair, nil
}
