package runcmd

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/backoff"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

// A view shows a run's changes as they arrive. Lost and found come in pairs, around a time without a server.
type view interface {
	update(message *signalboxv1.WatchRunResponse)
	lost(address string)
	found()
}

// silence is how long a stream may bring nothing before it counts as broken: a server that has nothing to say repeats
// the run every 15 seconds, and a connection whose peer has vanished would otherwise never be noticed.
const silence = 45 * time.Second

// firstPause and longestPause are the pauses between attempts to reach the server.
const firstPause, longestPause = 100 * time.Millisecond, 5 * time.Second

// follower follows one run to its end, across broken streams and restarts of the server.
type follower struct {
	invocation *invocation.Invocation
	project    string
	id         string
	view       view
	silence    time.Duration

	shown    bool  // whether the view has the run
	sequence int64 // of the last change seen; a new stream begins after it
	away     bool  // whether the view shows that the server cannot be reached
	tries    int   // in a row without an answer
}

func newFollower(s *invocation.Invocation, project, id string, view view) *follower {
	return &follower{invocation: s, project: project, id: id, view: view, silence: silence}
}

// untilEnd returns the finished run, with input and output.
func (f *follower) untilEnd(ctx context.Context) (*signalboxv1.Run, error) {
	for {
		over, err := f.stream(ctx)
		if over {
			var run *signalboxv1.Run
			if run, err = f.fetch(ctx); err == nil && hasEnded(run.GetStatus()) {
				return run, nil
			}
		}
		if err := f.pause(ctx, err); err != nil {
			return nil, err
		}
	}
}

// stream shows changes until the stream ends; over says that the run has.
func (f *follower) stream(ctx context.Context) (over bool, err error) {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	watchdog := time.AfterFunc(f.silence, cut)
	defer watchdog.Stop()
	stream, err := f.invocation.Runs().WatchRun(ctx, connect.NewRequest(&signalboxv1.WatchRunRequest{
		Project: f.project, Id: f.id, AfterSequence: f.sequence, View: "heads",
	}))
	if err != nil {
		return false, err
	}
	for stream.Receive() {
		watchdog.Reset(f.silence)
		f.answered()
		message := stream.Msg()
		f.show(message)
		over = over || hasEnded(message.GetRun().GetStatus())
	}
	return over || stream.Err() == nil, errors.Join(stream.Err(), stream.Close())
}

// show passes news on; a repetition, as servers send to say that they are there, is none.
func (f *follower) show(message *signalboxv1.WatchRunResponse) {
	if f.shown && len(message.GetSteps()) == 0 && message.GetRun().GetSequence() <= f.sequence {
		return
	}
	f.shown = true
	f.sequence = max(f.sequence, message.GetRun().GetSequence())
	for _, step := range message.GetSteps() {
		f.sequence = max(f.sequence, step.GetSequence())
	}
	f.view.update(message)
}

func (f *follower) fetch(ctx context.Context) (*signalboxv1.Run, error) {
	request := &signalboxv1.GetRunRequest{Project: f.project, Id: f.id}
	response, err := invocation.Send(ctx, f.invocation, f.invocation.Runs().GetRun, request)
	if err != nil {
		return nil, err
	}
	f.answered()
	return response.GetRun(), nil
}

func (f *follower) answered() {
	f.tries = 0
	if f.away {
		f.away = false
		f.view.found()
	}
}

// pause decides whether to go on after err (nil: the stream merely ended), and waits before it does.
func (f *follower) pause(ctx context.Context, err error) error {
	if ctx.Err() == nil && err != nil {
		if !passing(err) {
			return f.invocation.Failed(err, "wait for run %q", f.id)
		}
		if !f.away {
			f.away = true
			f.view.lost(f.invocation.Address())
		}
	}
	f.tries++
	if !loop.Sleep(ctx, backoff.Delay(firstPause, longestPause, f.tries)) {
		return f.givenUp(ctx)
	}
	return nil
}

// givenUp explains the end of waiting: the run does not end with it.
func (f *follower) givenUp(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return exit.Errorf(exit.RunTimedOut, "wait for run %q: it has not ended within --timeout; it continues: %s", f.id,
			f.invocation.Command("run watch %s", f.id))
	}
	return exit.Errorf(exit.Interrupted, "interrupted; run %q continues: \"%s\" watches it, \"%s\" cancels it",
		f.id, f.invocation.Command("run watch %s", f.id), f.invocation.Command("run cancel %s", f.id))
}

// passing reports whether err is a transport failure, which a retry may cure, and not an answer of the server.
func passing(err error) bool {
	switch connect.CodeOf(err) {
	case connect.CodeNotFound, connect.CodeInvalidArgument, connect.CodeFailedPrecondition, connect.CodePermissionDenied,
		connect.CodeUnauthenticated, connect.CodeUnimplemented, connect.CodeOutOfRange:
		return false
	default:
		return true
	}
}
