package classify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/signalbox-dev/signalbox/conn/conntype"
)

// dialTimeout limits each dial and each handshake.
const dialTimeout = time.Second

// Diagnose dials the address where a request's error leaves the kind open. There are three such cases: a request with a
// deadline that passed before there was a connection (is the port closed, or does a program accept the connection and
// send nothing?), a connection without TLS that was cut before the server sent anything (does the server require TLS?),
// and one with TLS (does the server reject the client's certificate?). config is the client's, nil without TLS. It
// returns the kind and the error to show.
func Diagnose(ctx context.Context, address string, config *tls.Config, kind conntype.Kind,
	err error) (conntype.Kind, error) {
	address = strings.TrimPrefix(address, "dns:///")
	host, _, splitErr := net.SplitHostPort(address)
	if splitErr != nil || strings.Contains(address, "//") {
		return kind, err // several addresses, or a custom resolver scheme
	}
	switch {
	case kind == conntype.Hung:
		conn, dialErr := dial(ctx, address)
		if dialErr != nil {
			return conntype.Unreachable, fmt.Errorf("%w (%w)", err, dialErr)
		}
		_ = conn.Close() // nothing was sent
	case kind != conntype.Unreachable || !connectionCut(err):
	case config == nil:
		if speaksTLS(ctx, address) {
			return conntype.TLSError,
				fmt.Errorf("the server at %s requires TLS, and this client does not use it: %w", address, err)
		}
	default:
		if alert := clientCertificateAlert(ctx, address, host, config); alert != nil {
			return conntype.TLSError,
				fmt.Errorf("the server at %s rejects the client certificate, or requires one (%w): %w", address, alert, err)
		}
	}
	return kind, err
}

// Explain replaces the texts of gRPC that mislead: where the program that listens is no frontend, or sends nothing.
// Other errors are returned as they are.
func Explain(address string, err error) error {
	if err == nil || code(err) != codes.Unavailable {
		return err
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "frame too large"), strings.Contains(text, "looked like an HTTP/1.1 header"):
		return &explainedError{"the program that listens at " + address +
			" is not a Temporal frontend: it does not speak HTTP/2; check address and port", err}
	case noPreface(err):
		return &explainedError{"the program that listens at " + address +
			" accepts connections and sends nothing: it is frozen, " +
			"or is not a Temporal frontend; check the server, then address and port", err}
	default:
		return err
	}
}

// explainedError replaces the text of an error.
type explainedError struct {
	text  string
	cause error
}

// Error returns the new text.
func (e *explainedError) Error() string { return e.text }

// Unwrap returns the original error.
func (e *explainedError) Unwrap() error { return e.cause }

// connectionCut reports whether a connection was made and ended before the server sent anything.
func connectionCut(err error) bool {
	text := err.Error()
	for _, sign := range []string{"server preface", "client preface", "EOF", "reset by peer", "broken pipe"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

func dial(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	return dialer.DialContext(ctx, "tcp", address)
}

// speaksTLS reports whether the server answers a TLS handshake, trusted or not.
func speaksTLS(ctx context.Context, address string) bool {
	conn, err := dial(ctx, address)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }() // nothing was sent
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	err = tls.Client(conn, &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // nothing is sent
		NextProtos:         []string{"h2"},
	}).HandshakeContext(ctx)
	if err == nil {
		return true
	}
	return isTLSAlert(err)
}

// clientCertificateAlert connects as the client does and returns the TLS alert with which the server ends the
// connection; nil if there is none. In TLS 1.3 the client completes the handshake before the server has verified its
// certificate, so the alert arrives with the first read. Nothing is written: a server that has closed the connection
// would answer with a reset, which may overtake the alert.
func clientCertificateAlert(ctx context.Context, address, host string, config *tls.Config) error {
	conn, err := dial(ctx, address)
	if err != nil {
		return nil
	}
	defer func() { _ = conn.Close() }() // nothing was sent
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	if config.ServerName == "" {
		config.ServerName = host
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	secure := tls.Client(conn, config)
	if err = secure.HandshakeContext(ctx); err == nil {
		if err = secure.SetReadDeadline(time.Now().Add(dialTimeout)); err == nil {
			_, err = secure.Read(make([]byte, 1))
		}
	}
	if err != nil && isTLSAlert(err) {
		return err
	}
	return nil
}

// isTLSAlert reports whether the server ended a connection with a TLS alert.
func isTLSAlert(err error) bool {
	_, alert := errors.AsType[tls.AlertError](err)
	return alert || strings.Contains(err.Error(), "remote error: tls")
}
