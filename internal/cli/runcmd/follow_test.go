package runcmd

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// silentService answers a watch from the beginning with one message, repeated once, and then with silence; one that
// follows the message ends with the run. On a busy machine a watch may be given up before the message has arrived.
type silentService struct {
	signalboxv1connect.UnimplementedRunServiceHandler

	after atomic.Int64
}

func (m *silentService) WatchRun(ctx context.Context, request *connect.Request[signalboxv1.WatchRunRequest],
	stream *connect.ServerStream[signalboxv1.WatchRunResponse]) error {
	if after := request.Msg.GetAfterSequence(); after > 0 {
		m.after.Store(after)
		return stream.Send(&signalboxv1.WatchRunResponse{
			Run: &signalboxv1.Run{Id: "r", Status: statusCompleted, Sequence: 8}})
	}
	for range 2 {
		if err := stream.Send(&signalboxv1.WatchRunResponse{
			Run: &signalboxv1.Run{Id: "r", Status: statusRunning, Sequence: 7}}); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func (m *silentService) GetRun(context.Context,
	*connect.Request[signalboxv1.GetRunRequest]) (*connect.Response[signalboxv1.GetRunResponse], error) {
	return connect.NewResponse(&signalboxv1.GetRunResponse{Run: &signalboxv1.Run{Id: "r", Status: statusCompleted}}), nil
}

// countingView counts the updates of a view.
type countingView struct {
	*lines

	updates int
}

func (c *countingView) update(*signalboxv1.WatchRunResponse) { c.updates++ }

func TestSilentStreamIsResumed(t *testing.T) {
	t.Parallel()
	service := &silentService{}
	mux := http.NewServeMux()
	mux.Handle(signalboxv1connect.NewRunServiceHandler(service))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)

	var progress bytes.Buffer
	s := invocation.New(invocation.Streams{Env: config.Environment{invocation.AddressVariable: server.URL}, Now: time.Now})
	s.BindClient(&cobra.Command{})
	t.Cleanup(s.Close)
	view := &countingView{lines: newLines(&progress, output.Style{})}
	follow := newFollower(s, "default", "r", view)
	follow.silence = 100 * time.Millisecond
	run, err := follow.untilEnd(t.Context())
	require.NoError(t, err)
	require.Equal(t, statusCompleted, run.GetStatus())
	require.Contains(t, progress.String(), "connection lost")
	require.Contains(t, progress.String(), "connected again")
	require.EqualValues(t, 7, service.after.Load(), "resumed where it broke")
	require.Equal(t, 2, view.updates, "a repetition is no news")
}
