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

	"github.com/signalbox-dev/signalbox/conn/internal/machine"
)

// diagnosis bounds each of the two questions.
const diagnosis = time.Second

// Diagnose looks at the address where a request's error leaves the kind open: a request that ran out of time before there
// was a connection (is the port closed, or does a program accept the connection and send nothing?), a connection without TLS that was
// cut before a word was said (does the server want TLS?), and one with TLS that was (does the server reject the client's
// certificate?). config is what the client uses, nil without TLS. It returns the kind and the error to show.
func Diagnose(ctx context.Context, address string, config *tls.Config, kind machine.Kind, err error) (machine.Kind, error) {
	address = strings.TrimPrefix(address, "dns:///")
	host, _, splitErr := net.SplitHostPort(address)
	if splitErr != nil || strings.Contains(address, "//") {
		return kind, err // several addresses, or a scheme of somebody's own
	}
	switch {
	case kind == machine.Hung:
		conn, dialErr := dial(ctx, address)
		if dialErr != nil {
			return machine.Unreachable, fmt.Errorf("%w (%w)", err, dialErr)
		}
		_ = conn.Close() // nothing was said on it
	case kind != machine.Unreachable || !cut(err):
	case config == nil:
		if wantsTLS(ctx, address) {
			return machine.TLSError, fmt.Errorf("the server at %s wants TLS, and this client uses none: %w", address, err)
		}
	default:
		if alert := rejection(ctx, address, host, config); alert != nil {
			return machine.TLSError, fmt.Errorf("the server at %s rejects the client certificate, or its absence (%w): %w", address, alert, err)
		}
	}
	return kind, err
}

// Explain returns the error of a connection with words for what gRPC's own mislead about: what listens is no frontend, or says nothing.
func Explain(address string, err error) error {
	if err == nil || code(err) != codes.Unavailable {
		return err
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "frame too large"), strings.Contains(text, "looked like an HTTP/1.1 header"):
		return &explained{"what listens at " + address + " is no Temporal frontend: it does not speak HTTP/2; check address and port", err}
	case silent(err):
		return &explained{"what listens at " + address + " accepts connections and sends nothing: a server that is frozen, " +
			"or no Temporal frontend; check the server, then address and port", err}
	default:
		return err
	}
}

// explained is an error in other words.
type explained struct {
	text  string
	cause error
}

// Error returns the words.
func (e *explained) Error() string { return e.text }

// Unwrap returns the error that they explain.
func (e *explained) Unwrap() error { return e.cause }

// cut tells whether a connection was made and ended before the server said anything.
func cut(err error) bool {
	text := err.Error()
	for _, sign := range []string{"server preface", "client preface", "EOF", "reset by peer", "broken pipe"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

func dial(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: diagnosis}
	return dialer.DialContext(ctx, "tcp", address)
}

// wantsTLS begins a handshake and does not end it: what the server is, not whether it is trusted, is the question.
func wantsTLS(ctx context.Context, address string) bool {
	conn, err := dial(ctx, address)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }() // nothing was said on it
	ctx, cancel := context.WithTimeout(ctx, diagnosis)
	defer cancel()
	err = tls.Client(conn, &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // nothing is sent
		NextProtos:         []string{"h2"},
	}).HandshakeContext(ctx)
	if err == nil {
		return true
	}
	return alerted(err)
}

// rejection makes a connection as the client does and returns the alert with which the server ends it; nil where there is none. In TLS 1.3
// the client's part of the handshake is over before the server has seen its certificate, so the alert is what is read first. Nothing is
// written, since a server that has closed the connection answers that with a reset, which may overtake the alert.
func rejection(ctx context.Context, address, host string, config *tls.Config) error {
	conn, err := dial(ctx, address)
	if err != nil {
		return nil
	}
	defer func() { _ = conn.Close() }() // nothing was said on it
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	if config.ServerName == "" {
		config.ServerName = host
	}
	ctx, cancel := context.WithTimeout(ctx, diagnosis)
	defer cancel()
	secure := tls.Client(conn, config)
	if err = secure.HandshakeContext(ctx); err == nil {
		if err = secure.SetReadDeadline(time.Now().Add(diagnosis)); err == nil {
			_, err = secure.Read(make([]byte, 1))
		}
	}
	if err != nil && alerted(err) {
		return err
	}
	return nil
}

// alerted reports whether the other side ended a connection with an alert of TLS.
func alerted(err error) bool {
	_, alert := errors.AsType[tls.AlertError](err)
	return alert || strings.Contains(err.Error(), "remote error: tls")
}
