package poller_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/signalbox-dev/signalbox/conn/internal/poller"
)

var errCut = errors.New("cut")

// bench is a tracker with a clock that the test controls.
type bench struct {
	*poller.Tracker

	now time.Time
}

func newBench() *bench {
	b := &bench{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	b.Tracker = poller.NewTracker(func() time.Time { return b.now })
	return b
}

func workflow(queue string) any {
	return &workflowservice.PollWorkflowTaskQueueRequest{TaskQueue: &taskqueuepb.TaskQueue{Name: queue}}
}

func activity(queue string) any {
	return &workflowservice.PollActivityTaskQueueRequest{TaskQueue: &taskqueuepb.TaskQueue{Name: queue}}
}

// poll watches a request that ends with an error or nil. The functions are called while it is open.
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
	require.Equal(t, poller.QueueStatus{}, b.Queue("q"), "no poll was made")
	require.NoError(t, b.poll(t.Context(), workflow("q"), nil, func() {
		require.True(t, b.Queue("q").OK, "an open poll counts")
		require.False(t, b.Queue("other").OK)
		require.Equal(t, b.now, b.Queue("q").Last)
		b.now = b.now.Add(time.Minute)
	}))
	answered := b.now
	b.now = b.now.Add(10*time.Second - time.Millisecond)
	require.True(t, b.Queue("q").OK, "the next poll may follow within 10 s")
	require.Equal(t, answered, b.Queue("q").Last)
	b.now = b.now.Add(time.Millisecond)
	require.False(t, b.Queue("q").OK)
}

func TestRefusedPollsDoNotCount(t *testing.T) {
	t.Parallel()
	b := newBench()
	require.NoError(t, b.poll(t.Context(), workflow("q"), nil))
	b.now = b.now.Add(time.Second)
	require.ErrorIs(t, b.poll(t.Context(), workflow("q"), errCut), errCut)
	require.False(t, b.Queue("q").OK)
	require.ErrorIs(t, b.Queue("q").Err, errCut)
	require.Error(t, b.poll(t.Context(), workflow("q"), errCut, func() {
		require.False(t, b.Queue("q").OK, "after a refused poll, a poll that was just sent does not count")
		b.now = b.now.Add(250 * time.Millisecond)
		require.True(t, b.Queue("q").OK, "a poll that is open for 250 ms counts")
	}))
	b.now = b.now.Add(time.Second)
	require.NoError(t, b.poll(t.Context(), workflow("q"), nil))
	require.True(t, b.Queue("q").OK, "an answer ends the failure")
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

func TestCanceledPollsAreNoFailure(t *testing.T) {
	t.Parallel()
	b := newBench()
	require.NoError(t, b.poll(t.Context(), workflow("q"), nil))
	b.now = b.now.Add(time.Second)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	require.Error(t, b.poll(stopped, workflow("q"), context.Canceled))
	require.True(t, b.Queue("q").OK, "the poll of a stopping worker has not failed")
	late, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	require.Error(t, b.poll(late, workflow("q"), context.DeadlineExceeded))
	require.False(t, b.Queue("q").OK, "a poll that was not answered has failed")
}

func TestStickyQueuesCountForNormalQueue(t *testing.T) {
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
	require.False(t, poller.IsPoll(req))
	require.True(t, poller.IsPoll(workflow("q")))
	require.ErrorIs(t, b.poll(t.Context(), req, errCut), errCut)
	require.NoError(t, b.Queue("").Err)
}
