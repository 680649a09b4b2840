package exit_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/config"
)

func TestCodes(t *testing.T) {
	t.Parallel()
	answer := func(code connect.Code) error {
		return &exit.Call{What: "do it", Err: connect.NewError(code, errors.New("no"))}
	}
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("any"), 1},
		{exit.Usagef("wrong flag"), 2},
		{config.Violations{{Message: "wrong key"}}, 2},
		{fmt.Errorf("wrapped: %w", exit.Errorf(exit.RunFailed, "x")), 10},
		{context.Canceled, 130},
		{context.DeadlineExceeded, 5},
		{answer(connect.CodeNotFound), 3},
		{answer(connect.CodeFailedPrecondition), 4},
		{answer(connect.CodeAlreadyExists), 8},
		{answer(connect.CodeAborted), 8},
		{answer(connect.CodePermissionDenied), 7},
		{answer(connect.CodeUnauthenticated), 6},
		{answer(connect.CodeUnavailable), 5},
		{answer(connect.CodeDeadlineExceeded), 5},
		{answer(connect.CodeInvalidArgument), 1},
		{answer(connect.CodeResourceExhausted), 1},
		{answer(connect.CodeInternal), 1},
		{answer(connect.CodeUnimplemented), 1},
		{answer(connect.CodeCanceled), 130},
	} {
		require.Equal(t, test.want, exit.Code(test.err), "%v", test.err)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	require.Empty(t, exit.Line(nil))
	require.Empty(t, exit.Line(exit.Silently(exit.RunFailed)))
	require.Equal(t, "interrupted", exit.Line(fmt.Errorf("list: %w", context.Canceled)))
	call := &exit.Call{What: "do it", Address: "here:1",
		Err: connect.NewWireError(connect.CodeUnavailable, errors.New("busy")), Hint: "wait"}
	require.Equal(t, "do it: busy; wait", exit.Line(call))
	call = &exit.Call{What: "do it", Address: "here:1", Err: errors.New("plain")}
	require.Equal(t, "do it: plain", exit.Line(call))
	require.Empty(t, exit.Reason(call))
	call.Err = connect.NewError(connect.CodeNotFound, nil)
	require.Equal(t, "do it: not_found", exit.Line(call), "an answer without words still says something")
}

// The line says so where something else than Signalbox answers, whatever it sends.
func TestLinesOfForeignServers(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"":                 "ended before the answer; try again, and check --address",
		"-ERR unknown\r\n": "may not be Signalbox, check --address",
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}":       "may not be Signalbox, check --address",
		"HTTP/1.1 501 Not Implemented\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nno": "may not be Signalbox, check --address",
		"HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 9\r\n\r\nab":      "ended before the answer",
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 4096)) // the request
				_, _ = c.Write([]byte(answer))
				_ = c.Close()
			}
		}()
		address := listener.Addr().String()
		client := signalboxv1connect.NewProjectServiceClient(http.DefaultClient, "http://"+address)
		_, err = client.ListProjects(t.Context(), connect.NewRequest(&signalboxv1.ListProjectsRequest{}))
		call := &exit.Call{What: "list projects", Address: address, Err: err}
		require.Contains(t, exit.Line(call), want, "%q", answer)
	}
}
