// Package classify tells from a failed request what is wrong with a connection to Temporal.
//
//	kind := classify.Kind(err) // machine.None: whoever answered is a working frontend
//
// An answer is not an outage: a frontend that says "too many requests" or "invalid argument" is there. What the error of a
// request does not show (is the port open at all, does the server require TLS, does it reject the client's certificate) is found out by
// [Diagnose].
package classify

import (
	"context"
	"crypto/x509"
	"errors"
	"strings"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/signalbox-dev/signalbox/conn/internal/machine"
)

// Kind returns what the error says of the connection; machine.None for no error and for any answer of a frontend that works.
func Kind(err error) machine.Kind {
	if err == nil {
		return machine.None
	}
	if missing(err) {
		return machine.NamespaceMissing
	}
	switch code(err) {
	case codes.Unavailable:
		switch {
		case secured(err):
			return machine.TLSError
		case silent(err):
			return machine.Hung
		default:
			return machine.Unreachable
		}
	case codes.Unimplemented: // something answers, and it is no Temporal frontend
		return machine.Unreachable
	case codes.DeadlineExceeded:
		return machine.Hung
	case codes.Unauthenticated, codes.PermissionDenied:
		return machine.AuthFailed
	default:
		return machine.None
	}
}

// missing tells whether the namespace does not exist. An interceptor sees the plain status, of which the SDK makes a typed
// error later.
func missing(err error) bool {
	if s, plain := status.FromError(err); plain {
		err = serviceerror.FromStatus(s)
	}
	_, missing := errors.AsType[*serviceerror.NamespaceNotFound](err)
	return missing
}

// Suspicious tells whether a request's error is a reason to look at the connection at once.
func Suspicious(err error) bool { return Kind(err) != machine.None }

// Credentials returns the kind of an error in making a client: its certificates or its key could not be had.
func Credentials(err error) machine.Kind {
	if secured(err) {
		return machine.TLSError
	}
	return machine.AuthFailed
}

func code(err error) codes.Code {
	if errors.Is(err, context.DeadlineExceeded) {
		return codes.DeadlineExceeded
	}
	if errors.Is(err, context.Canceled) {
		return codes.Canceled
	}
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return serviceerror.ToStatus(err).Code()
}

// silent tells whether a connection was made and the client gave up waiting for the server's first word: gRPC then closes it
// under its own read, as a process that was frozen makes it do.
func silent(err error) bool {
	text := err.Error()
	return strings.Contains(text, "server preface") &&
		(strings.Contains(text, "use of closed network connection") || strings.Contains(text, "i/o timeout"))
}

// secured tells whether TLS is at fault. gRPC passes the handshake's error on as text only.
func secured(err error) bool {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	if unknown || host || invalid {
		return true
	}
	text := err.Error()
	for _, sign := range []string{"authentication handshake failed", "tls: ", "x509: ", "certificate"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}
