package classify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/conn/internal/machine"
)

// diagnosis bounds each of the two questions.
const diagnosis = time.Second

// Diagnose looks at the address where a request's error leaves the kind open: a request that ran out of time before there
// was a connection (does nobody listen, or does somebody listen and say nothing?), and a connection without TLS that was
// cut before a word was said (does the server want TLS?). It returns the kind and the error to show.
func Diagnose(ctx context.Context, address string, secure bool, kind machine.Kind, err error) (machine.Kind, error) {
	address = strings.TrimPrefix(address, "dns:///")
	if _, _, splitErr := net.SplitHostPort(address); splitErr != nil || strings.Contains(address, "//") {
		return kind, err // several addresses, or a scheme of somebody's own
	}
	switch kind {
	case machine.Hung:
		conn, dialErr := dial(ctx, address)
		if dialErr != nil {
			return machine.Unreachable, fmt.Errorf("%w (%w)", err, dialErr)
		}
		_ = conn.Close() // nothing was said on it
		return machine.Hung, err
	case machine.Unreachable:
		if secure || !cut(err) {
			return kind, err
		}
		if wantsTLS(ctx, address) {
			return machine.TLSError, fmt.Errorf("the server at %s wants TLS, and this client uses none: %w", address, err)
		}
		return kind, err
	default:
		return kind, err
	}
}

// cut tells whether a connection was made and ended before the server said anything.
func cut(err error) bool {
	text := err.Error()
	return strings.Contains(text, "server preface") || strings.Contains(text, "EOF") || strings.Contains(text, "reset by peer")
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
	_, alert := errors.AsType[tls.AlertError](err)
	return alert || strings.Contains(err.Error(), "remote error: tls")
}
