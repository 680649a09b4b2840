package invocation

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// caller sends the token along: to the server that is meant, and to no other. What goes wrong on the way it calls by
// its name.
type caller struct {
	*http.Transport

	host  string
	token string
	// answered receives the header of each response of the server.
	answered func(http.Header)
}

// RoundTrip sends a request.
func (c *caller) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.token != "" && r.URL.Host == c.host {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.Transport.RoundTrip(r)
	if err != nil {
		if r.URL.Scheme == "https" && r.Context().Err() == nil && !specific(err) {
			err = cmp.Or(c.refusal(r.Context(), r.URL.Host), err)
		}
		return nil, broken(err)
	}
	if r.URL.Scheme == "http" && res.StatusCode == http.StatusBadRequest && wantsTLS(res) {
		_ = res.Body.Close()                                                          // it is read
		return nil, fmt.Errorf("the server speaks TLS; write https://%s", r.URL.Host) //nolint:err113 // for people
	}
	if r.URL.Host == c.host {
		c.answered(res.Header)
	}
	res.Body = body{res.Body}
	return res, nil
}

// body is an answer that may break off.
type body struct{ io.ReadCloser }

func (b body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	return n, broken(err)
}

// broken says that the server has gone: Connect takes a connection that breaks for a caller that has hung up.
func broken(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return connect.NewError(connect.CodeUnavailable, err)
	}
	return err
}

// wantsTLS reports whether res is the answer of a server that accepts only TLS. It leaves the body readable from its
// start.
func wantsTLS(res *http.Response) bool {
	said := []byte("Client sent an HTTP request to an HTTPS server.")
	begin, err := io.ReadAll(io.LimitReader(res.Body, int64(len(said))))
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(begin), res.Body), res.Body}
	return err == nil && bytes.Equal(begin, said)
}

// specific reports whether an error states by itself why there is no connection.
func specific(err error) bool {
	var op *net.OpError
	var untrusted *tls.CertificateVerificationError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == exit.RefusedByServer) || errors.As(err, &untrusted)
}

// refusal connects once more to read why the server refuses the connection. The server sends its TLS alert after the
// handshake, while the first request is written, so the first error may be the alert or only a broken connection.
func (c *caller) refusal(ctx context.Context, host string) error {
	const patience = time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conf := c.TLSClientConfig.Clone()
	if conf == nil {
		conf = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	conf.NextProtos = []string{"http/1.1"}
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(host, "443")
	}
	conn, err := (&tls.Dialer{Config: conf}).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil // the first error has more detail
	}
	defer func() { _ = conn.Close() }() // nothing was asked of it
	// Nothing is written: an answer to what the other side does not read any more would take its reason away.
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil
	}
	_, err = conn.Read(make([]byte, 1))
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == exit.RefusedByServer {
		return err
	}
	return nil
}
