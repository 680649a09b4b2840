// Package exit turns errors into the one line a person reads and the code a script branches on.
//
// Commands return errors; Code and Line, called once at the end, decide. The codes are part of the command
// line's contract:
//
//	0 ok · 1 failed · 2 usage · 3 not found · 4 refused · 5 unavailable · 6 not signed in · 7 forbidden · 8 conflict
//	10 the run failed · 11 it was canceled or terminated · 12 it timed out (waiting for a run only)
//	130 interrupted
package exit

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/config"
)

// The codes.
const (
	OK          = 0
	Failed      = 1
	Usage       = 2
	NotFound    = 3
	Refused     = 4
	Unavailable = 5
	NotSignedIn = 6
	Forbidden   = 7
	Conflict    = 8
	RunFailed   = 10
	RunCanceled = 11
	RunTimedOut = 12
	Interrupted = 130
)

// Error is an error with a code. Of silent errors nothing is printed: the command has printed the cause.
type Error struct {
	Code   int
	Err    error
	Silent bool
}

// Error returns the line.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error with a code.
func Errorf(code int, format string, args ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// Usagef makes the error of a command line that cannot be understood.
func Usagef(format string, args ...any) error { return Errorf(Usage, format, args...) }

// Silently makes an error that only sets the code, for a command whose output says what is wrong.
func Silently(code int) error {
	return &Error{Code: code, Err: fmt.Errorf("exit code %d", code), Silent: true}
}

// Code decides the process's exit code.
func Code(err error) int {
	var own *Error
	var violations config.Violations
	var answer *connect.Error
	switch {
	case err == nil:
		return OK
	case errors.As(err, &own):
		return own.Code
	case errors.As(err, &violations):
		return Usage
	case errors.As(err, &answer):
		return codeOf(answer)
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.Is(err, context.DeadlineExceeded):
		return Unavailable
	default:
		return Failed
	}
}

// codeOf: refused is what the state of an object forbids, and a conflict what another request was faster with; a
// request that is wrong in itself has failed.
func codeOf(answer *connect.Error) int {
	switch answer.Code() {
	case connect.CodeNotFound:
		return NotFound
	case connect.CodeFailedPrecondition:
		return Refused
	case connect.CodeUnauthenticated:
		return NotSignedIn
	case connect.CodePermissionDenied:
		return Forbidden
	case connect.CodeAlreadyExists, connect.CodeAborted:
		return Conflict
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded:
		return Unavailable
	case connect.CodeCanceled:
		return Interrupted
	default: // invalid, over a limit, unknown, internal, unimplemented
		return Failed
	}
}

// Line returns what to print about err, or "" where there is nothing more to say.
func Line(err error) string {
	var own *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &own) && own.Silent:
		return ""
	case errors.Is(err, context.Canceled):
		return "interrupted"
	default:
		return err.Error()
	}
}
