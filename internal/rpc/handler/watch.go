package handler

import (
	"context"
	"reflect"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/livelist"
	"github.com/signalbox-dev/signalbox/internal/run/read"
)

const (
	// maxTopics bounds the topics of a watch. Package permission bounds the watches of a project and of a token.
	maxTopics = 16
	// batchInterval and engineInterval are the intervals at which batches and the connection are read.
	batchInterval  = time.Second
	engineInterval = 250 * time.Millisecond
)

// RunLists keeps lists of runs current.
type RunLists interface {
	Watch(q livelist.Query) (*livelist.Watcher, error)
}

// Watches implements signalbox.v1.WatchService: it streams several topics of one project to one client, merged at a
// bounded rate. Package livelist keeps the lists of runs, which all clients share; each client reads the other topics.
type Watches struct {
	runs    *Runs
	lists   RunLists
	batches BatchService // nil if this server has none
	engine  Engine
}

// watchTopic is a topic of a watch.
type watchTopic = topic[*signalboxv1.WatchResponse]

// Watch streams the changes of several topics.
func (h *Watches) Watch(
	ctx context.Context, req *connect.Request[signalboxv1.WatchRequest],
	s *connect.ServerStream[signalboxv1.WatchResponse],
) error {
	m := req.Msg
	if n := len(m.GetTopics()); n == 0 || n > maxTopics {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, "%d topics: give 1 to %d", n, maxTopics).
			WithField("topics", "must have 1 to %d items", maxTopics)
	}
	project := message.ProjectOf(m.GetProject())
	if _, err := h.runs.projects.Get(ctx, project); err != nil {
		return err
	}
	topics := make([]watchTopic, len(m.GetTopics()))
	for i, t := range m.GetTopics() {
		var err error
		if topics[i], err = h.topic(ctx, m, i, t); err != nil {
			return err
		}
	}
	sending := newStream(func(m *signalboxv1.WatchResponse) error {
		m.Time = message.Timestamp(time.Now())
		return s.Send(m)
	}, func() *signalboxv1.WatchResponse { return &signalboxv1.WatchResponse{Heartbeat: true} })
	return sending.run(ctx, topics)
}

// topic returns the topic with this index of a request.
func (h *Watches) topic(ctx context.Context, m *signalboxv1.WatchRequest, index int,
	t *signalboxv1.WatchTopic) (watchTopic, error) {
	project, field := message.ProjectOf(m.GetProject()), "topics["+strconv.Itoa(index)+"]"
	switch {
	case t.GetRuns() != nil:
		return h.runsTopic(ctx, m.GetProject(), index, t)
	case t.GetRun() != nil:
		return h.runTopic(project, index, t)
	case t.GetBatch() != nil && h.batches != nil:
		id := t.GetBatch().GetId()
		read := func(ctx context.Context) (batch.Batch, error) { return h.batches.Get(ctx, project, id) }
		return polled(batchInterval, read, func(a, b batch.Batch) bool {
			return reflect.DeepEqual(a, b)
		}, func(b batch.Batch) *signalboxv1.WatchResponse {
			return &signalboxv1.WatchResponse{
				Topic: int32(index), Reset_: true, //nolint:gosec // few
				Content: &signalboxv1.WatchResponse_Batch{Batch: batchMessage(b)}}
		}), nil
	case t.GetEngine() != nil:
		read := func(context.Context) (*signalboxv1.EngineStatus, error) {
			return engineMessage(h.engine.Connection()), nil
		}
		same := func(a, b *signalboxv1.EngineStatus) bool { return proto.Equal(a, b) }
		return polled(engineInterval, read, same, func(e *signalboxv1.EngineStatus) *signalboxv1.WatchResponse {
			return &signalboxv1.WatchResponse{
				Topic: int32(index), Reset_: true, Content: &signalboxv1.WatchResponse_Engine{Engine: e}} //nolint:gosec // few
		}), nil
	}
	return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
		"%s has no topic that this server supports: give runs, run, batch or engine", field).
		WithField(field, "is required")
}

func engineMessage(c conntype.Status) *signalboxv1.EngineStatus {
	return &signalboxv1.EngineStatus{
		State: string(c.State), Kind: string(c.Kind), Since: message.Timestamp(c.Since), Attempts: c.Attempts,
		NextAttemptTime: message.Timestamp(c.NextAttempt),
	}
}

// runTopic returns the topic of one run.
func (h *Watches) runTopic(project string, index int, t *signalboxv1.WatchTopic) (watchTopic, error) {
	field := "topics[" + strconv.Itoa(index) + "]."
	m, after := t.GetRun(), t.GetRun().GetAfterSequence()
	if err := requireID(m.GetId()); err != nil {
		return nil, err
	}
	if cursor := t.GetCursor(); cursor != "" {
		var err error
		if after, err = strconv.ParseInt(cursor, 10, 64); err != nil {
			return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
				"cursor %q is not one of a run: give the cursor of the last message of the topic", cursor).
				WithField(field+"cursor", "is not a cursor of this topic")
		}
	}
	if after < 0 {
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"the sequence is negative: give the last sequence seen, or 0 for all").
			WithField(field+"run.afterSequence", "must not be negative")
	}
	heads, err := headsOnly(m.GetView(), field+"run.view")
	if err != nil {
		return nil, err
	}
	watched := read.Watched{Project: project, ID: m.GetId(), After: after, Heads: heads}
	return func(ctx context.Context, o *outlet[*signalboxv1.WatchResponse]) error {
		first := true
		return h.runs.service.Watch(ctx, watched, func(c read.Change) error {
			return o.message(ctx, func(context.Context) (*signalboxv1.WatchResponse, bool, error) {
				content := h.runs.change(ctx, c)
				if !first {
					content.Run.Input = nil
				}
				reset := first && after == 0
				first = false
				return &signalboxv1.WatchResponse{
					Topic: int32(index), Cursor: strconv.FormatInt(c.Run.Sequence, 10), Reset_: reset, //nolint:gosec // few
					Content: &signalboxv1.WatchResponse_Run{Run: content},
				}, true, nil
			})
		})
	}, nil
}

// runsTopic returns the topic of a list of runs.
func (h *Watches) runsTopic(ctx context.Context, project string, index int,
	t *signalboxv1.WatchTopic) (watchTopic, error) {
	request, query, err := h.listQuery(ctx, project, index, t)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, o *outlet[*signalboxv1.WatchResponse]) error {
		w, err := h.lists.Watch(query)
		if err != nil {
			return err
		}
		defer w.Close()
		if err := h.firstRead(ctx, query.Filter.Project, w); err != nil {
			return err
		}
		for {
			err := o.message(ctx, func(ctx context.Context) (*signalboxv1.WatchResponse, bool, error) {
				change, changed, err := w.Take(ctx)
				if err != nil || !changed {
					return nil, false, err
				}
				content, err := h.runsChange(ctx, request, change)
				return &signalboxv1.WatchResponse{
					Topic: int32(index), Cursor: change.Cursor, Reset_: change.Reset, //nolint:gosec // few
					Content: &signalboxv1.WatchResponse_Runs{Runs: content},
				}, true, err
			})
			if err != nil {
				return err
			}
			if err := w.Wait(ctx); err != nil {
				return err
			}
		}
	}, nil
}

// firstRead waits for the first content of a list. It may have to be read, so it takes a slot of the project's reads;
// later reads are shared by all watches and take a bounded share of a processor.
func (h *Watches) firstRead(ctx context.Context, project string, w *livelist.Watcher) error {
	done, err := h.runs.reads.acquire(ctx, project)
	if err != nil {
		return err
	}
	defer done()
	return w.Wait(ctx)
}

// listQuery returns the query of a list, and the request with which ListRuns continues it.
func (h *Watches) listQuery(
	ctx context.Context, project string, index int, t *signalboxv1.WatchTopic,
) (request *signalboxv1.ListRunsRequest, query livelist.Query, err error) {
	field := "topics[" + strconv.Itoa(index) + "].runs.list."
	request = &signalboxv1.ListRunsRequest{}
	if given := t.GetRuns().GetList(); given != nil {
		request = proto.CloneOf(given)
	}
	if request.GetProject() == "" {
		request.Project = project
	}
	switch {
	case message.ProjectOf(request.GetProject()) != message.ProjectOf(project):
		return nil, query, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"a topic lists runs of project %q in a watch of project %q: leave it out, or watch that project",
			request.GetProject(), message.ProjectOf(project)).
			WithField(field+"project", "must be empty or the project of the watch")
	case request.GetPageToken() != "":
		return nil, query, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"a watch begins with the first page: leave out page_token").
			WithField(field+"pageToken", "must be empty")
	}
	size := request.GetPageSize()
	if size < 0 || size > livelist.MaxRows {
		return nil, query, apperror.New(apperror.Invalid, apperror.InvalidArgument, "page size %d: give 1 to %d, or 0 for %d",
			size, livelist.MaxRows, pageDefault).
			WithField(field+"pageSize", "must be between 0 and %d", livelist.MaxRows)
	}
	filter, err := h.runs.watchedFilter(ctx, request)
	if err != nil {
		return nil, query, err
	}
	filter.Limit = pageDefault
	if size > 0 {
		filter.Limit = int(size)
	}
	actor, _ := auth.ActorFrom(ctx)
	return request, livelist.Query{
		Owner: actor.ID, Filter: filter, Counts: t.GetRuns().GetWithCounts(), Cursor: t.GetCursor()}, nil
}

func (h *Watches) runsChange(ctx context.Context, request *signalboxv1.ListRunsRequest,
	c livelist.Change) (*signalboxv1.RunsChange, error) {
	m := &signalboxv1.RunsChange{Removed: c.Removed}
	for _, r := range c.Rows {
		m.Rows = append(m.Rows, &signalboxv1.RunsRow{Run: h.runs.messages.Run(ctx, r.Run), Matches: r.Matches})
	}
	if c.Counts != nil {
		m.Counts = message.Counts(*c.Counts)
	}
	if c.Next == nil {
		return m, nil
	}
	key, err := pageKey(request)
	if err == nil {
		m.NextPageToken, err = encodeToken(*c.Next, key)
	}
	return m, err
}

// watchedFilter returns the checked filter of a list, without its page.
func (h *Runs) watchedFilter(ctx context.Context, m *signalboxv1.ListRunsRequest) (run.Filter, error) {
	f, err := runFilter(m)
	if err == nil && m.GetOrder() == message.Longest {
		err = apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"order longest: a list by length cannot be watched, list it again instead").
			WithField("order", "must be newest or oldest")
	}
	if err != nil {
		return f, err
	}
	return h.service.Checked(ctx, f)
}
