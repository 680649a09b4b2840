package conntest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority is a certificate authority for one test. Its keys are in memory only.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Certificate is a certificate with its key.
type Certificate struct {
	tls.Certificate

	CertPEM, KeyPEM []byte
}

// lifetime is how long certificates are valid by default.
const lifetime = time.Hour

// NewAuthority makes a certificate authority.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of an authority: %w", err)
	}
	template := validity(time.Now().Add(lifetime))
	template.Subject = pkix.Name{CommonName: "conntest authority"}
	template.KeyUsage = x509.KeyUsageCertSign
	template.IsCA, template.BasicConstraintsValid = true, true
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of an authority: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of an authority: %w", err)
	}
	return &Authority{certificate, key}, nil
}

// Server makes a certificate for a server of the given names and IP addresses; without any, for localhost and
// 127.0.0.1.
func (a *Authority) Server(names ...string) (*Certificate, error) {
	return a.ServerUntil(time.Now().Add(lifetime), names...)
}

// ServerUntil is Server with an expiry time, which may be past.
func (a *Authority) ServerUntil(notAfter time.Time, names ...string) (*Certificate, error) {
	if len(names) == 0 {
		names = []string{"localhost", "127.0.0.1"}
	}
	template := validity(notAfter)
	template.Subject = pkix.Name{CommonName: names[0]}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return a.issue(template)
}

// Client makes a certificate for a client with a common name. The expiry time may be past.
func (a *Authority) Client(commonName string, notAfter time.Time) (*Certificate, error) {
	return a.client(commonName, validity(notAfter))
}

// ClientBetween is Client with the time from which the certificate is valid, for a certificate near the end of a long
// lifetime.
func (a *Authority) ClientBetween(commonName string, notBefore, notAfter time.Time) (*Certificate, error) {
	return a.client(commonName, &x509.Certificate{NotBefore: notBefore, NotAfter: notAfter})
}

func (a *Authority) client(commonName string, template *x509.Certificate) (*Certificate, error) {
	template.Subject = pkix.Name{CommonName: commonName}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

// ServerConfig returns a server's TLS configuration with a certificate. With requireClients it accepts only clients
// with a certificate of this authority.
func (a *Authority) ServerConfig(server *Certificate, requireClients bool) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{server.Certificate}}
	if requireClients {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, a.Pool()
	}
	return config
}

// ClientConfig returns a client's TLS configuration, which trusts only this authority. client is its certificate; nil:
// none.
func (a *Authority) ClientConfig(client *Certificate) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.Pool()}
	if client != nil {
		config.Certificates = []tls.Certificate{client.Certificate}
	}
	return config
}

// Pool returns a pool with the authority's own certificate.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// Write writes the authority's own certificate to folder/name.crt and returns that path.
func (a *Authority) Write(folder, name string) (certFile string, err error) {
	certFile = filepath.Join(folder, name+".crt")
	return certFile, replace(certFile, encode("CERTIFICATE", a.certificate.Raw))
}

// Write writes the certificate to folder/name.crt and its key to folder/name.key, and returns both paths. Each file is
// replaced as a whole, the key first, so a reader never reads a partial file.
func (c *Certificate) Write(folder, name string) (certFile, keyFile string, err error) {
	certFile, keyFile = filepath.Join(folder, name+".crt"), filepath.Join(folder, name+".key")
	if err := replace(keyFile, c.KeyPEM); err != nil {
		return "", "", err
	}
	return certFile, keyFile, replace(certFile, c.CertPEM)
}

// validity returns the template of a certificate with an expiry time, valid from an hour before now or before that
// time.
func validity(notAfter time.Time) *x509.Certificate {
	notBefore := time.Now().Add(-lifetime)
	if notAfter.Before(time.Now()) {
		notBefore = notAfter.Add(-lifetime)
	}
	return &x509.Certificate{NotBefore: notBefore, NotAfter: notAfter}
}

func (a *Authority) issue(template *x509.Certificate) (*Certificate, error) {
	template.KeyUsage = x509.KeyUsageDigitalSignature
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of %q: %w", template.Subject.CommonName, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of %q: %w", template.Subject.CommonName, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("write the key of %q: %w", template.Subject.CommonName, err)
	}
	c := &Certificate{CertPEM: encode("CERTIFICATE", der), KeyPEM: encode("PRIVATE KEY", keyDER)}
	if c.Certificate, err = tls.X509KeyPair(c.CertPEM, c.KeyPEM); err != nil {
		return nil, fmt.Errorf("pair the certificate of %q with its key: %w", template.Subject.CommonName, err)
	}
	return c, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func replace(file string, data []byte) error {
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
