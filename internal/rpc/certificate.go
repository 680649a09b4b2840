package rpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
)

// CertificateFiles are the paths of what the listener's TLS needs: a certificate, its key and, if callers must present
// certificates, the authorities that issue them. All files are PEM.
type CertificateFiles struct {
	Cert string
	Key  string
	// ClientCA, if set, has the authorities of the certificates that callers must present.
	ClientCA string
}

// Certificate is the listener's certificate. It is safe for concurrent use.
//
//	certificate, err := rpc.OpenCertificate(rpc.CertificateFiles{Cert: "tls.crt", Key: "tls.key"})
//	server := &http.Server{TLSConfig: certificate.Config()}
//
// Every handshake checks the files and reads them if they have changed, so a rotation needs no restart. While the files
// cannot be used, for example because only one of the two is new, the previous certificate stays in use.
type Certificate struct {
	files CertificateFiles

	mu     sync.Mutex
	seen   []stamp
	config *tls.Config
}

// stamp identifies a version of a file, to detect changes.
type stamp struct {
	at   time.Time
	size int64
}

func (s stamp) equal(other stamp) bool { return s.at.Equal(other.at) && s.size == other.size }

// OpenCertificate reads the files for the first time.
func OpenCertificate(files CertificateFiles) (*Certificate, error) {
	c := &Certificate{files: files}
	c.seen, _ = files.stamps() // if this fails, read fails as well
	var err error
	c.config, err = files.read()
	return c, err
}

// Config returns the TLS configuration of a server.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         alpn(),
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return c.current(hello.Context()), nil },
	}
}

// Current returns the current certificate. As a handshake does, it reads the files if they have changed.
func (c *Certificate) Current(ctx context.Context) *x509.Certificate {
	return c.current(ctx).Certificates[0].Leaf
}

// current returns the current TLS settings.
func (c *Certificate) current(ctx context.Context) *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	stamps, err := c.files.stamps()
	if err == nil && slices.EqualFunc(stamps, c.seen, stamp.equal) {
		return c.config
	}
	log := logger.FromContext(ctx)
	var config *tls.Config
	if err == nil {
		config, err = c.files.read()
	}
	if err != nil {
		log.WarnContext(ctx, "The listener's certificate cannot be reloaded; the previous one stays in use", "error", err)
		return c.config
	}
	log.InfoContext(ctx, "The listener has a new certificate", "expires", config.Certificates[0].Leaf.NotAfter)
	c.config, c.seen = config, stamps
	return config
}

func (f CertificateFiles) paths() []string {
	if f.ClientCA == "" {
		return []string{f.Cert, f.Key}
	}
	return []string{f.Cert, f.Key, f.ClientCA}
}

func (f CertificateFiles) stamps() ([]stamp, error) {
	var all []stamp
	for _, path := range f.paths() {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		all = append(all, stamp{info.ModTime(), info.Size()})
	}
	return all, nil
}

var errNoCertificate = errors.New("no certificate in PEM form found in it")

func (f CertificateFiles) read() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("load the listener's certificate (listen_tls.cert_file %q, key_file %q): %w", f.Cert, f.Key,
			err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: alpn(), Certificates: []tls.Certificate{pair}}
	if f.ClientCA == "" {
		return config, nil
	}
	pem, err := os.ReadFile(f.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("read the authorities of callers (listen_tls.client_ca_file): %w", err)
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read the authorities of callers (listen_tls.client_ca_file %q): %w", f.ClientCA,
			errNoCertificate)
	}
	return config, nil
}

// alpn are the ALPN protocols of the listener; gRPC requires h2.
func alpn() []string { return []string{"h2", "http/1.1"} }
