package poll_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/signalbox-dev/signalbox/conn/internal/poll"
)

var errCut = errors.New("cut")

// bench is a tracker with a clock that the test moves.
type bench struct {
	*poll.Tracker

	now time.Time
}

func newBench() *bench {
	b := &bench{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	b.Tracker = poll.NewTracker(func() time.Time { return b.now })
	return b
}

func workflow(queue string) any {
	return &workflowservice.PollWorkflowTaskQueueRequest{TaskQueue: &taskqueuepb.TaskQueue{Name: queue}}
}

func activity(queue string) any {
	return &workflowservice.PollActivityTaskQueueRequest{TaskQueue: &taskqueuepb.TaskQueue{Name: queue}}
}

// poll lets a request be answered; while it is held open, what is given happens.
func (b *bench) poll(ctx context.Context, req any, answer error, meanwhile ...func()) error {
	return b.Watch(ctx, req, func() error {
		for _, fn := range meanwhile {
			fn()
		}
		return answer
	})
}

func TestOpenAndAnsweredPolls(t *testing.T) {
	t.Parallel()
	b := newBench()
	require.Equal(t, poll.Poll{}, b.Queue("q"), "nobody has polled")
	require.NoError(t, b.poll(t.Context(), workflow("q"), nil, func() {
		require.True(t, b.Queue("q").OK, "one that the server holds open is a poll")
		require.False(t, b.Queue("other").OK)
		require.Equal(t, b.now, b.Queue("q").Last)
		b.now = b.now.Add(time.Minute)
	}))
	answered := b.now
	b.now = b.now.Add(10*time.Second - time.Millisecond)
	require.True(t, b.Queue("q").OK, "the next one is about to be sent")
	require.Equal(t, answered, b.Queue("q").Last)
	b.now = b.now.Add(time.Millisecond)
	require.False(t, b.Queue("q").OK)
}

func TestRefusedPollsAreNone(t *testing.T) {
	t.Parallel()
	b := newBench()
	require.NoError(t, b.poll(t.Context(), workflow("q"), nil))
	b.now = b.now.Add(time.Second)
	require.ErrorIs(t, b.poll(t.Context(), workflow("q"), errCut), errCut)
	require.False(t, b.Queue("q").OK)
	require.ErrorIs(t, b.Queue("q").Err, errCut)
	require.Error(t, b.poll(t.Context(), workflow("q"), errCut, func() {
		require.False(t, b.Queue("q").OK, "a poll that is only being tried proves nothing yet")
		b.now = b.now.Add(250 * time.Millisecond)
		require.True(t, b.Queue("q").OK, "one that has been held for so long does")
	}))
	b.now = b.now.Add(time.Second)
	require.NoError(t, b.poll(t.Context(), workflow("q"), nil))
	require.True(t, b.Queue("q").OK, "a failure is mended by an answer")
}

func TestEveryKindMustPoll(t *testing.T) {
	t.Parallel()
	b := newBench()
	require.NoError(t, b.poll(t.Context(), workflow("q"), nil))
	require.True(t, b.Queue("q").OK)
	b.now = b.now.Add(time.Second)
	require.Error(t, b.poll(t.Context(), activity("q"), errCut))
	require.False(t, b.Queue("q").OK)
	require.ErrorIs(t, b.Queue("q").Err, errCut)
	b.now = b.now.Add(time.Second)
	require.NoError(t, b.poll(t.Context(), activity("q"), nil))
	require.True(t, b.Queue("q").OK)
}

func TestStoppedPollsHaveNotFailed(t *testing.T) {
	t.Parallel()
	b := newBench()
	require.NoError(t, b.poll(t.Context(), workflow("q"), nil))
	b.now = b.now.Add(time.Second)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	require.Error(t, b.poll(stopped, workflow("q"), context.Canceled))
	require.True(t, b.Queue("q").OK, "a worker that stops polls no more, and that is all")
	late, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	require.Error(t, b.poll(late, workflow("q"), context.DeadlineExceeded))
	require.False(t, b.Queue("q").OK, "a poll that nobody answered has failed")
}

func TestStickyQueuesCountAsTheirOwn(t *testing.T) {
	t.Parallel()
	b := newBench()
	require.NoError(t, b.poll(t.Context(), &workflowservice.PollWorkflowTaskQueueRequest{
		TaskQueue: &taskqueuepb.TaskQueue{Name: "worker-1:abc", NormalName: "q", Kind: enumspb.TASK_QUEUE_KIND_STICKY},
	}, nil))
	require.True(t, b.Queue("q").OK)
	require.False(t, b.Queue("worker-1:abc").OK)
}

func TestOtherRequestsPass(t *testing.T) {
	t.Parallel()
	b := newBench()
	req := &workflowservice.DescribeNamespaceRequest{}
	require.False(t, poll.Is(req))
	require.True(t, poll.Is(workflow("q")))
	require.ErrorIs(t, b.poll(t.Context(), req, errCut), errCut)
	require.NoError(t, b.Queue("").Err)
}
