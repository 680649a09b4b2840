package clientconfig

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/config"
)

// The keys of violations, and the sources of credentials without a key.
const (
	certKey   = "temporal.tls.cert_file"
	keyKey    = "temporal.tls.key_file"
	caKey     = "temporal.tls.ca_file"
	apiKeyKey = "temporal.api_key_file"
	inline    = "Temporal's own configuration"
)

// checkTemporal reads the credentials and reports everything that is wrong with them at once: files that cannot be
// read, are empty or hold something else, a key of another certificate, a client certificate outside its validity. The
// last one heals, by a rotation or with time.
func checkTemporal(t config.Temporal, now time.Time) config.Violations {
	var c checker
	if t.APIKeyFile != "" {
		c.apiKey(t.APIKeyFile)
	}
	if !t.TLSEnabled() {
		return c.violations
	}
	c.client(t, now)
	if ca, ok := c.read(t.TLS.CAFile, caKey, t.Profile.CAPEM); ok && !x509.NewCertPool().AppendCertsFromPEM(ca.content) {
		c.add(ca, "the authorities hold no certificate in PEM form; give the certificates of those that sign Temporal's")
	}
	return c.violations
}

var errNoCertificate = errors.New("no certificate in PEM form found in it")

type checker struct{ violations config.Violations }

// part is one credential and its source.
type part struct {
	path    string // its key; empty when it was given inline
	content []byte
}

func (c *checker) add(p part, format string, args ...any) {
	c.violations = append(c.violations, violation(p, fmt.Sprintf(format, args...)))
}

func violation(p part, message string) config.Violation {
	if p.path == "" {
		return config.Violation{Source: inline, Message: message}
	}
	return config.Violation{Path: p.path, Message: message}
}

// read returns the content of the file or the inline value, and whether there is any.
func (c *checker) read(file, path string, given []byte) (part, bool) {
	if file == "" {
		return part{content: given}, len(given) > 0
	}
	p := part{path: path}
	var err error
	if p.content, err = os.ReadFile(file); err != nil {
		c.add(p, "the file cannot be read: %v; check its path and permissions", err)
		return part{}, false
	}
	return p, true
}

func (c *checker) apiKey(file string) {
	if key, ok := c.read(file, apiKeyKey, nil); ok && len(bytes.TrimSpace(key.content)) == 0 {
		c.add(key, "the file %q is empty; write the API key into it", file)
	}
}

// client checks the client's certificate and its key, each by itself and then together. Half a pair of files is
// reported by their keys' own validation.
func (c *checker) client(t config.Temporal, now time.Time) {
	cert, hasCert := c.read(t.TLS.CertFile, certKey, t.Profile.CertPEM)
	key, hasKey := c.read(t.TLS.KeyFile, keyKey, []byte(t.Profile.KeyPEM.Reveal()))
	if !hasCert || !hasKey {
		if cert.path == "" && key.path == "" && hasCert != hasKey {
			c.add(part{}, "the client certificate and its private key are given inline, but one of them is missing; give both")
		}
		return
	}
	leaf, err := certificate(cert.content)
	if err != nil {
		c.add(cert, "the client certificate cannot be used: %v", err)
	}
	if !hasPrivateKey(key.content) {
		c.add(key, "the private key is none in PEM form; give the one of the client certificate")
		return
	}
	if leaf == nil {
		return
	}
	if _, err := tls.X509KeyPair(cert.content, key.content); err != nil {
		c.add(key, "the private key does not go with the client certificate: %v; give the key that the certificate was "+
			"made for", err)
	}
	const layout = "2006-01-02 15:04:05Z"
	switch {
	case now.After(leaf.NotAfter):
		p := violation(cert, fmt.Sprintf("the client certificate expired at %s; renew it (a server starts with it, and "+
			"connects once the file holds a valid one)",
			leaf.NotAfter.UTC().Format(layout)))
		p.Heals = true
		c.violations = append(c.violations, p)
	case now.Before(leaf.NotBefore):
		p := violation(cert, fmt.Sprintf("the client certificate is not valid before %s; check the clock, or wait (a "+
			"server starts with it, and connects then)",
			leaf.NotBefore.UTC().Format(layout)))
		p.Heals = true
		c.violations = append(c.violations, p)
	}
}

// TemporalCertificate returns the certificate that Temporal is shown, as its file has it now; nil where none is
// configured.
func TemporalCertificate(t config.Temporal) (*x509.Certificate, error) {
	content := t.Profile.CertPEM
	if t.TLS.CertFile != "" {
		var err error
		if content, err = os.ReadFile(t.TLS.CertFile); err != nil {
			return nil, err
		}
	}
	if len(content) == 0 {
		return nil, nil //nolint:nilnil // none is not an error
	}
	return certificate(content)
}

// certificate parses the first certificate, which is the client's own.
func certificate(content []byte) (*x509.Certificate, error) {
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, errNoCertificate
}

func hasPrivateKey(content []byte) bool {
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "PRIVATE KEY" || strings.HasSuffix(block.Type, " PRIVATE KEY") {
			return true
		}
	}
	return false
}
