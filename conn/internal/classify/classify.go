// Package classify derives the state of a connection to Temporal from the error of a request.
//
//	kind := classify.Kind(err) // conntype.None: a working frontend has answered
//
// An answer is not an outage: a frontend that answers "too many requests" or "invalid argument" works. What the error
// of a request does not show (is the port open, does the server require TLS, does it reject the client's certificate)
// is examined by [Diagnose].
package classify

import (
	"context"
	"crypto/x509"
	"errors"
	"strings"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/signalbox-dev/signalbox/conn/conntype"
)

// Kind returns the kind of outage that the error shows; conntype.None for no error and for any answer of a working
// frontend.
func Kind(err error) conntype.Kind {
	if err == nil {
		return conntype.None
	}
	if namespaceMissing(err) {
		return conntype.NamespaceMissing
	}
	switch code(err) {
	case codes.Canceled:
		if isReset(err) { // the server or a proxy has given the request up, as at its deadline
			return conntype.Hung
		}
		return conntype.None
	case codes.Internal:
		if isReset(err) {
			return conntype.Unreachable
		}
		return conntype.None
	case codes.Unavailable:
		switch {
		case isTLS(err):
			return conntype.TLSError
		case noPreface(err):
			return conntype.Hung
		default:
			return conntype.Unreachable
		}
	case codes.Unimplemented: // a gRPC server that is no Temporal frontend
		return conntype.Unreachable
	case codes.DeadlineExceeded:
		return conntype.Hung
	case codes.Unauthenticated, codes.PermissionDenied:
		return conntype.AuthFailed
	default:
		return conntype.None
	}
}

// isReset reports whether the server or a proxy has ended a request without an answer. gRPC says so in the text only.
func isReset(err error) bool { return strings.Contains(err.Error(), "stream terminated by RST_STREAM") }

// namespaceMissing reports whether the namespace does not exist. An interceptor receives the plain gRPC status, which
// the SDK converts to a typed error later.
func namespaceMissing(err error) bool {
	if s, plain := status.FromError(err); plain {
		err = serviceerror.FromStatus(s)
	}
	_, missing := errors.AsType[*serviceerror.NamespaceNotFound](err)
	return missing
}

// SuggestsOutage reports whether a request's error is a reason to check the connection at once.
func SuggestsOutage(err error) bool { return Kind(err) != conntype.None }

// CredentialsKind returns the kind of an error in making a client: its certificates or key could not be read.
func CredentialsKind(err error) conntype.Kind {
	if isTLS(err) {
		return conntype.TLSError
	}
	return conntype.AuthFailed
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

// noPreface reports whether a connection was made and gRPC gave up waiting for the server's HTTP/2 preface: gRPC then
// closes the connection during its own read. A frozen process causes this.
func noPreface(err error) bool {
	text := err.Error()
	return strings.Contains(text, "server preface") &&
		(strings.Contains(text, "use of closed network connection") || strings.Contains(text, "i/o timeout"))
}

// isTLS reports whether TLS is the cause. gRPC passes the error of the handshake on as text only.
func isTLS(err error) bool {
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
