package annotation_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/annotation"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// rows are the sources of annotations. A test of the recorder holds their mutex except while it waits.
type rows struct {
	mu       sync.Mutex
	outages  []annotation.Outage
	versions []workflow.Version
	owners   []dispatchtype.OwnerChange
	away     error
	writes   int
}

func (r *rows) WriteOutages(_ context.Context, list []annotation.Outage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	if r.away != nil {
		return r.away
	}
	for _, o := range list {
		i := 0
		for i < len(r.outages) && !r.outages[i].Since.Equal(o.Since) {
			i++
		}
		if i == len(r.outages) {
			r.outages = append(r.outages, o)
		}
		r.outages[i] = o
	}
	return nil
}

func (r *rows) ListOutages(context.Context, time.Time, time.Time, int) ([]annotation.Outage, error) {
	return append([]annotation.Outage{}, r.outages...), nil
}

func (r *rows) ListPublications(context.Context, string, time.Time, time.Time, int) ([]workflow.Version, error) {
	return r.versions, nil
}

func (r *rows) OwnerHistory(_ context.Context, name inbox.Name, _ int) ([]dispatchtype.OwnerChange, error) {
	if name != (inbox.Name{Project: "shop", TaskQueue: "signalbox-shop"}) {
		return nil, errors.New("another dispatcher")
	}
	return r.owners, nil
}

func (r *rows) GetProject(_ context.Context, name string) (project.Project, error) {
	if name != "shop" {
		return project.Project{}, apperror.NoProject(name)
	}
	return project.Project{Name: name}, nil
}

func (r *rows) service() *annotation.Service {
	return annotation.NewService(annotation.Options{
		Outages: r, Publications: r, Owners: r, Projects: r, TaskQueue: func(p string) string { return "signalbox-" + p },
		Now: func() time.Time { return noon },
	})
}

func at(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }

func TestOutagesOfServersAreMerged(t *testing.T) {
	t.Parallel()
	r := &rows{outages: []annotation.Outage{
		{Server: "b", Since: at(-58), Kind: "hung", SeenAt: at(-50), EndedAt: at(-50)},
		{Server: "a", Since: at(-60), Kind: "unreachable", SeenAt: at(-55), EndedAt: at(-55)},
		{Server: "a", Since: at(-40), Kind: "unreachable", SeenAt: at(-38), EndedAt: at(-38)},
		{Server: "killed", Since: at(-30), SeenAt: at(-25)},
		{Server: "a", Since: at(-10), Kind: "unreachable", SeenAt: at(0)},
		{Server: "b", Since: at(-9), Kind: "unreachable", SeenAt: at(-1), EndedAt: at(-1)},
		{Server: "killed long ago", Since: at(-3000), SeenAt: at(-2999)},
	}}
	list, err := r.service().List(t.Context(),
		annotation.Request{Project: "shop", Kinds: []annotation.Kind{annotation.KindOutage}})
	require.NoError(t, err)
	outage := func(start, end time.Time, title, detail string) annotation.Annotation {
		return annotation.Annotation{
			Kind: annotation.KindOutage, Start: start, End: end, Title: title, Subject: "temporal", Detail: detail}
	}
	require.Equal(t, []annotation.Annotation{
		outage(at(-60), at(-50), "Temporal was unavailable", "unreachable, hung, seen by 2 servers"),
		outage(at(-40), at(-38), "Temporal was unavailable", "unreachable, seen by 1 server"),
		outage(at(-30), at(-25), "Temporal was unavailable", "not connected since the start of the server, seen by 1 server"),
		outage(at(-10), time.Time{}, "Temporal is unavailable", "unreachable, seen by 2 servers"),
	}, list.Annotations)
	require.Empty(t, list.More)
}

func TestPublicationsAndOwners(t *testing.T) {
	t.Parallel()
	name := inbox.Name{Project: "shop", TaskQueue: "signalbox-shop"}
	r := &rows{
		versions: []workflow.Version{{Workflow: "shop/order", Version: "1.4.0", Publisher: "ada", PublishedAt: at(-20)}},
		owners: []dispatchtype.OwnerChange{
			{Name: name, Outcome: dispatchtype.Takeover, To: inbox.Owner{Holder: "w2", Epoch: 8}, Reason: "stale", At: at(-10)},
			{Name: name, Outcome: dispatchtype.Lost, From: inbox.Owner{Holder: "w1", Epoch: 7}, At: at(-30)},
			{Name: name, Outcome: dispatchtype.ColdStart, To: inbox.Owner{Holder: "w1", Epoch: 1}, At: at(-3000)},
		},
	}
	list, err := r.service().List(t.Context(), annotation.Request{Project: "shop"})
	require.NoError(t, err)
	require.Equal(t, []annotation.Annotation{
		{Kind: annotation.KindOwner, Start: at(-30), End: at(-30), Title: "The dispatcher lost its owner",
			Subject: "signalbox-shop", Detail: "from w1"},
		{Kind: annotation.KindPublish, Start: at(-20), End: at(-20), Title: "shop/order 1.4.0 was published",
			Subject: "shop/order", Detail: "version 1.4.0 by ada"},
		{Kind: annotation.KindOwner, Start: at(-10), End: at(-10), Title: "The dispatcher changed its owner",
			Subject: "signalbox-shop", Detail: "to w2, epoch 8 (takeover): stale"},
	}, list.Annotations)

	for range annotation.MaxOfKind {
		r.versions = append(r.versions, r.versions[0])
	}
	list, err = r.service().List(t.Context(),
		annotation.Request{Project: "shop", Kinds: []annotation.Kind{annotation.KindPublish}})
	require.NoError(t, err)
	require.Len(t, list.Annotations, annotation.MaxOfKind)
	require.Equal(t, []annotation.Kind{annotation.KindPublish}, list.More)

	for _, bad := range []annotation.Request{
		{Kinds: []annotation.Kind{"start"}}, {From: at(1)}, {From: at(-1), To: at(-1)}} {
		bad.Project = "shop"
		_, err = r.service().List(t.Context(), bad)
		require.True(t, apperror.Is(err, apperror.InvalidArgument), "%v", err)
	}
	_, err = r.service().List(t.Context(), annotation.Request{Project: "none"})
	require.True(t, apperror.Is(err, apperror.ProjectNotFound))
}

func up(outages int64, last time.Duration) conntype.Status {
	return conntype.Status{
		State:      conntype.Connected,
		Statistics: conntype.Statistics{Outages: outages, LastOutage: last, ConnectedSince: time.Now()},
	}
}

func down(outages int64) conntype.Status {
	return conntype.Status{
		State: conntype.Down, Kind: conntype.Unreachable, Since: time.Now().Add(-time.Second),
		Statistics: conntype.Statistics{Outages: outages},
	}
}

// recording runs a recorder in the time of a bubble.
func recording(t *testing.T, test func(t *testing.T, r *rows, status *conntype.Status, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, status := &rows{}, &conntype.Status{State: conntype.Connecting}
		connection := func() conntype.Status {
			r.mu.Lock()
			defer r.mu.Unlock()
			return *status
		}
		recorder := annotation.NewRecorder(connection, r, "a", time.Now)
		require.NoError(t, recorder.Start(t.Context()))
		stopped := false
		stop := func() {
			stopped = true
			r.mu.Unlock()
			defer r.mu.Lock()
			require.NoError(t, recorder.Stop(context.WithoutCancel(t.Context())))
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		test(t, r, status, stop)
		if !stopped {
			stop()
		}
	})
}

// wait lets the recorder run for a time.
func (r *rows) wait(d time.Duration) {
	r.mu.Unlock()
	defer r.mu.Lock()
	<-time.After(d)
	synctest.Wait()
}

func TestRecorderWritesOutages(t *testing.T) {
	t.Parallel()
	recording(t, func(t *testing.T, r *rows, status *conntype.Status, stop func()) {
		r.wait(time.Minute)
		*status = up(0, 0)
		r.wait(time.Minute)
		require.Zero(t, r.writes, "nothing is written while Temporal is available")

		*status = down(1)
		since := status.Since
		r.wait(2 * time.Second)
		require.Equal(t, []any{1, since, "unreachable"}, []any{len(r.outages), r.outages[0].Since, r.outages[0].Kind})
		require.True(t, r.outages[0].EndedAt.IsZero())
		r.wait(20 * time.Second)
		require.WithinRange(t, r.outages[0].SeenAt, time.Now().Add(-6*time.Second), time.Now(), "an open outage is confirmed")
		require.LessOrEqual(t, r.writes, 7)
		*status = up(1, time.Since(since))
		r.wait(2 * time.Second)
		require.Equal(t, status.Statistics.ConnectedSince, r.outages[0].EndedAt)

		// One that nothing saw while it lasted.
		*status = up(2, 300*time.Millisecond)
		r.wait(2 * time.Second)
		require.Equal(t, 300*time.Millisecond, r.outages[1].EndedAt.Sub(r.outages[1].Since))

		*status = down(3)
		r.wait(2 * time.Second)
		stop()
		require.Len(t, r.outages, 3)
		require.False(t, r.outages[2].EndedAt.IsZero(), "it ends with the server")
	})
}

func TestRecorderKeepsOutagesWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	recording(t, func(t *testing.T, r *rows, status *conntype.Status, _ func()) {
		r.away = errors.New("no database")
		for n := range int64(3) {
			*status = down(n + 1)
			r.wait(10 * time.Second)
			*status = up(n+1, 10*time.Second)
			r.wait(10 * time.Second)
		}
		require.Empty(t, r.outages)
		require.LessOrEqual(t, r.writes, 20, "it does not try all the time")
		r.away = nil
		r.wait(10 * time.Second)
		require.Len(t, r.outages, 3)
		for _, o := range r.outages {
			require.False(t, o.EndedAt.IsZero())
		}
	})
}

func TestServerThatNeverConnectedRecordsAnOutage(t *testing.T) {
	t.Parallel()
	recording(t, func(t *testing.T, r *rows, status *conntype.Status, _ func()) {
		*status = conntype.Status{State: conntype.Connecting, LastError: "refused", Since: time.Now()}
		r.wait(3 * time.Second)
		require.Len(t, r.outages, 1)
		*status = up(0, 0)
		r.wait(3 * time.Second)
		require.Len(t, r.outages, 1)
		require.Equal(t, status.Statistics.ConnectedSince, r.outages[0].EndedAt)
	})
}
