package exit

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
)

// Call is a call of the API that failed: what was being done, and where. Hint is what to do about it, where that is
// more than the answer says.
type Call struct {
	What    string
	Address string
	Err     error
	Hint    string
	Program string // the name by which the program was called
	Dev     string // the command that starts a server on this machine
}

// Error returns the line.
func (c *Call) Error() string {
	line := c.Err.Error()
	if answer, ok := errors.AsType[*connect.Error](c.Err); ok {
		line = c.describe(answer)
	}
	if c.Hint != "" {
		line += "; " + c.Hint
	}
	return c.What + ": " + line
}

// Unwrap returns the answer.
func (c *Call) Unwrap() error { return c.Err }

// Reason returns the machine-readable reason of the server's answer, or "".
func Reason(err error) string {
	var answer *connect.Error
	if !errors.As(err, &answer) {
		return ""
	}
	for _, detail := range answer.Details() {
		if value, err := detail.Value(); err == nil {
			if info, ok := value.(*errdetails.ErrorInfo); ok {
				return info.GetReason()
			}
		}
	}
	return ""
}

// describe writes the server's answer on one line: its message, the fields at fault, the reason, when to try again.
func (c *Call) describe(answer *connect.Error) string {
	var line strings.Builder
	line.WriteString(c.message(answer))
	var reason string
	for _, detail := range answer.Details() {
		value, err := detail.Value()
		if err != nil {
			continue // a detail of a newer server
		}
		switch value := value.(type) {
		case *errdetails.ErrorInfo:
			reason = value.GetReason()
		case *errdetails.BadRequest:
			for _, violation := range value.GetFieldViolations() {
				if !strings.Contains(line.String(), violation.GetDescription()) { // the message may have said it
					line.WriteString("; " + violation.GetField() + ": " + violation.GetDescription())
				}
			}
		case *errdetails.RetryInfo:
			if wait := value.GetRetryDelay().AsDuration(); wait > 0 {
				line.WriteString("; try again in " + wait.Round(time.Millisecond).String())
			}
		}
	}
	if reason != "" {
		line.WriteString(" [" + reason + "]")
	}
	return strings.ReplaceAll(line.String(), "\n", " ")
}

// RefusedByServer is what crypto/tls calls an operation that the other side has ended with an alert: its reason is in
// the error.
const RefusedByServer = "remote error"

func (c *Call) message(answer *connect.Error) string {
	address := c.Address
	if line := c.distrust(answer); line != "" {
		return line
	}
	if unreachable(answer) {
		return "Signalbox at " + address + " cannot be reached (" + rootCause(answer) + "); is the server running? \"" +
			c.Dev + "\" starts one here, --address names another"
	}
	switch answer.Code() {
	case connect.CodeDeadlineExceeded:
		return "no answer from " + address + " in time; try again, or allow more with --timeout"
	case connect.CodeCanceled:
		return "interrupted"
	case connect.CodeUnimplemented:
		return answer.Message() +
			"; the server does not have this method: is it Signalbox, and at least as new as this command?"
	case connect.CodeResourceExhausted: // also an answer that is larger than this client reads
	default:
		if line := c.foreign(answer); line != "" {
			return line
		}
	}
	if answer.Message() == "" {
		return answer.Code().String()
	}
	return answer.Message()
}

// foreign words an error that Signalbox did not send; "" for one that it did.
func (c *Call) foreign(answer *connect.Error) string {
	switch {
	case errors.Is(answer, io.EOF), errors.Is(answer, io.ErrUnexpectedEOF):
		return "the connection to " + c.Address +
			" ended before the answer; try again, and check --address if it ends each time"
	case answer.Message() == "",
		connect.IsWireError(answer) && (answer.Code() != connect.CodeUnknown || len(answer.Details()) > 0):
		return ""
	default:
		return answer.Message() + "; what answers at " + c.Address + " may not be Signalbox, check --address"
	}
}

// distrust words what one side has against the other's certificate; "" when that is not what went wrong.
func (c *Call) distrust(answer *connect.Error) string {
	address := c.Address
	if untrusted, ok := errors.AsType[*tls.CertificateVerificationError](answer); ok {
		line := "the certificate of " + address + " is not to be trusted (" + rootCause(untrusted) + ")"
		if errors.As(answer, new(x509.UnknownAuthorityError)) {
			line += "; if it is the right one, name its authority with --ca-file"
		}
		return line
	}
	var op *net.OpError
	if errors.As(answer, &op) && op.Op == RefusedByServer {
		return address + " refuses the connection (" + rootCause(answer) + "): it requires a client certificate from an " +
			"authority that it trusts; see --cert-file and --key-file of \"" + c.Program + " context set\""
	}
	return ""
}

// unreachable reports whether no server was reached; a server that answers UNAVAILABLE was reached.
func unreachable(answer *connect.Error) bool {
	var op *net.OpError
	return answer.Code() == connect.CodeUnavailable && errors.As(answer, &op)
}

// rootCause is the innermost text: "connection refused" instead of four layers of wrapping.
func rootCause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
