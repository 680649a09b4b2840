package invocation

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/secretfile"
)

// Variables with the caller's credentials and the trusted authorities.
const (
	TokenVariable    = config.Prefix + "TOKEN"
	CAFileVariable   = config.Prefix + "CA_FILE"
	CertFileVariable = config.Prefix + "CERT_FILE"
	KeyFileVariable  = config.Prefix + "KEY_FILE"
)

// bindAccess adds --token and --ca-file.
func (s *Invocation) bindAccess(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.token, "token", "",
		"`token` to call with ("+TokenVariable+"); other users of this machine can see it here")
	cmd.Flags().StringVar(&s.caFile, "ca-file", "",
		"`file` of the authorities that the server's certificate is from, PEM ("+CAFileVariable+"; default the system's)")
}

// there returns the chosen context where it is its server that is called, and else an empty one: what belongs to one
// server, its token above all, is not for another.
func (s *Invocation) there() Context {
	chosen := s.context()
	if given := s.givenAddress(); given != "" && given != chosen.Address {
		return Context{}
	}
	return chosen
}

// prepare reads the token and the certificates, before anything is sent.
func (s *Invocation) prepare() error {
	base, err := url.Parse(s.url())
	if err != nil {
		return exit.Usagef("%q is no address of a server: %w", s.Address(), err)
	}
	token, err := s.tokenText()
	if err != nil {
		return err
	}
	if token != "" && base.Scheme == "http" && !isLoopback(base.Hostname()) {
		s.Note("the token goes to %s in plain text; use an https:// address where there is one", base.Host)
	}
	transport := s.transport.Clone()
	if transport.TLSClientConfig, err = s.tlsConfig(); err != nil {
		return err
	}
	s.client.CloseIdleConnections()
	s.client.Transport = &caller{Transport: transport, host: base.Host, token: token, answered: s.answered}
	return nil
}

// tokenText returns the token to call with, or "".
func (s *Invocation) tokenText() (string, error) {
	text, from := s.token, "--token"
	if text == "" && s.named == "" { // the token of a named context is not that of the environment
		text, from = s.Env[TokenVariable], TokenVariable
	}
	if file := s.there().TokenFile; text == "" && file != "" {
		content, err := secretfile.Read(file)
		if err != nil {
			return "", exit.Usagef("the token of the current context cannot be read: %w; see \"%s\"", err,
				s.Command("context set --help"))
		}
		text, from = string(content), file
		if strings.TrimSpace(text) == "" {
			return "", exit.Usagef("the token of the current context: %s is empty", file)
		}
	}
	text = strings.TrimSpace(text)
	for _, c := range text {
		if c <= ' ' || c > '~' {
			return "", exit.Usagef("%s holds no token: there is a character in it that no token has", from)
		}
	}
	return text, nil
}

// tlsConfig has the trusted authorities; nil means the system's.
func (s *Invocation) tlsConfig() (*tls.Config, error) {
	there := s.there()
	ca := first(s.caFile, s.Env[CAFileVariable], there.CAFile)
	cert, key := first(s.Env[CertFileVariable], there.CertFile), first(s.Env[KeyFileVariable], there.KeyFile)
	if ca == "" && cert == "" && key == "" {
		return nil, nil //nolint:nilnil // as net/http takes it
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, exit.Usagef("the authorities cannot be read: %w; see --ca-file", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, exit.Usagef("%s holds no certificate in PEM form; see --ca-file", ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, exit.Usagef("a client certificate and its key are given both or not at all; see %s and %s",
			CertFileVariable, KeyFileVariable)
	}
	if cert != "" {
		if _, err := secretfile.Read(key); err != nil {
			return nil, exit.Usagef("the key of the client certificate cannot be used: %w; see %s", err, KeyFileVariable)
		}
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, exit.Usagef("the client certificate and its key cannot be used: %w; see %s and %s", err,
				CertFileVariable, KeyFileVariable)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

// stay refuses to go where a server points to: what is sent is for the server that was named.
func stay(r *http.Request, _ []*http.Request) error {
	return fmt.Errorf("the server points to %s://%s; give that as --address if it is correct", r.URL.Scheme,
		r.URL.Host) //nolint:err113 // for people
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
