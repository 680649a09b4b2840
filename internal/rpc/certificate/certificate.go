// Package certificate configures TLS of the listener: a certificate and key from files and, if callers must present
// certificates, the authorities that issue them.
//
//	files, err := certificate.Open(certificate.Files{Cert: "tls.crt", Key: "tls.key"})
//	server := &http.Server{TLSConfig: files.Config()}
//
// Every handshake checks the files and reads them if they have changed, so a rotation needs no restart. While the files
// cannot be used, for example because only one of the two is new, the previous certificate stays in use.
package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
)

// Files are the paths; all files are PEM.
type Files struct {
	Cert string
	Key  string
	// ClientCA, if set, has the authorities of the certificates that callers must present.
	ClientCA string
}

// Keeper holds the current certificate. It is safe for concurrent use.
type Keeper struct {
	files Files

	mu     sync.Mutex
	seen   []stamp
	config *tls.Config
}

// stamp identifies a version of a file, to detect changes.
type stamp struct {
	at   time.Time
	size int64
}

// Open reads the files for the first time.
func Open(files Files) (*Keeper, error) {
	k := &Keeper{files: files}
	k.seen, _ = files.stamps() // if this fails, read fails as well
	var err error
	k.config, err = files.read()
	return k, err
}

// Config returns the TLS configuration of a server.
func (k *Keeper) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         protocols(),
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return k.current(hello.Context()), nil },
	}
}

// Certificate returns the current certificate. As a handshake does, it reads the files if they have changed.
func (k *Keeper) Certificate(ctx context.Context) *x509.Certificate {
	return k.current(ctx).Certificates[0].Leaf
}

// current returns the current TLS settings.
func (k *Keeper) current(ctx context.Context) *tls.Config {
	k.mu.Lock()
	defer k.mu.Unlock()
	stamps, err := k.files.stamps()
	if err == nil && equal(stamps, k.seen) {
		return k.config
	}
	log := logger.FromContext(ctx)
	var config *tls.Config
	if err == nil {
		config, err = k.files.read()
	}
	if err != nil {
		log.WarnContext(ctx, "The listener's certificate cannot be reloaded; the previous one stays in use", "error", err)
		return k.config
	}
	log.InfoContext(ctx, "The listener has a new certificate", "expires", config.Certificates[0].Leaf.NotAfter)
	k.config, k.seen = config, stamps
	return config
}

func (f Files) paths() []string {
	if f.ClientCA == "" {
		return []string{f.Cert, f.Key}
	}
	return []string{f.Cert, f.Key, f.ClientCA}
}

func (f Files) stamps() ([]stamp, error) {
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

func equal(a, b []stamp) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].at.Equal(b[i].at) || a[i].size != b[i].size {
			return false
		}
	}
	return true
}

var errNoCertificate = errors.New("no certificate in PEM form found in it")

func (f Files) read() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("load the listener's certificate (listen_tls.cert_file %q, key_file %q): %w", f.Cert, f.Key,
			err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols(), Certificates: []tls.Certificate{pair}}
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

// protocols are the ALPN protocols of the listener; gRPC requires h2.
func protocols() []string { return []string{"h2", "http/1.1"} }
