package cli_test

import (
	"context"
	"strconv"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
)

// watches answers the first topic of a watch, a list of runs, with all runs whenever one has changed.
type watches struct{ *api }

func (w watches) Watch(
	ctx context.Context, request *connect.Request[signalboxv1.WatchRequest],
	stream *connect.ServerStream[signalboxv1.WatchResponse],
) error {
	w.mu.Lock()
	w.note(proto.CloneOf(request.Msg))
	drop := w.drop
	w.mu.Unlock()
	topic := request.Msg.GetTopics()[0]
	after, _ := strconv.ParseInt(topic.GetCursor(), 10, 64)
	for {
		w.mu.Lock()
		content := &signalboxv1.RunsChange{}
		for _, run := range w.runs {
			if run.GetSequence() > after {
				content.Rows = append(content.Rows, &signalboxv1.RunsRow{Run: proto.CloneOf(run), Matches: run.GetEndTime() == nil})
			}
		}
		after = w.seq
		err := stream.Send(&signalboxv1.WatchResponse{
			Cursor: strconv.FormatInt(after, 10), Content: &signalboxv1.WatchResponse_Runs{Runs: content},
		})
		changed := w.changed
		w.mu.Unlock()
		if err == nil {
			err = stream.Send(&signalboxv1.WatchResponse{Heartbeat: true})
		}
		if err != nil {
			return err
		}
		select {
		case <-changed:
		case <-drop:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
