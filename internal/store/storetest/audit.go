package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func testAuditList(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	var want []audit.Entry
	for i, name := range []string{"a", "b", "c", "d"} {
		e := audit.Entry{
			Time: at(i), Actor: auth.Actor{Kind: auth.KindLocal, Name: "user-" + name}, Action: "action." + name, Project: name,
			Subject: "subject-" + name, Reason: "because " + name, Detail: json.RawMessage(`{"b": 1,  "a":"` + name + `"}`),
		}
		require.NoError(t, s.CreateProject(ctx, project.Project{Name: name, CreatedAt: at(0)}, e))
		want = append([]audit.Entry{e}, want...)
	}
	all, err := s.ListAudit(ctx, audit.Filter{Limit: 100})
	require.NoError(t, err)
	require.Len(t, all, len(want))
	for i := range all {
		if i > 0 {
			require.Less(t, all[i].ID, all[i-1].ID)
		}
		want[i].ID = all[i].ID
	}
	require.Equal(t, want, all)

	for _, tt := range []struct {
		name   string
		filter audit.Filter
		want   []audit.Entry
	}{
		{"project", audit.Filter{Project: "b"}, want[2:3]},
		{"action", audit.Filter{Action: "action.c"}, want[1:2]},
		{"subject", audit.Filter{Subject: "subject-d"}, want[:1]},
		{"actor", audit.Filter{Actor: "user-a"}, want[3:]},
		{"since is inclusive", audit.Filter{Since: at(2)}, want[:2]},
		{"until is exclusive", audit.Filter{Until: at(2)}, want[2:]},
		{"page", audit.Filter{After: &audit.Cursor{ID: all[0].ID}, Limit: 2}, want[1:3]},
		{"oldest first", audit.Filter{OldestFirst: true, After: &audit.Cursor{ID: all[3].ID}, Limit: 2},
			[]audit.Entry{want[2], want[1]}},
		{"nothing", audit.Filter{Project: "a", Action: "action.b"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.filter.Limit == 0 {
				tt.filter.Limit = 100
			}
			got, err := s.ListAudit(ctx, tt.filter)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

// testAuditWithItsChange makes the audit entry fail: the change must then be rolled back, too.
func testAuditWithItsChange(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	publish(t, s, version(hello, "1", "sha256:a", 1))
	insert(t, s, newRun("unstarted", 1))
	insert(t, s, newRun("open", 2))
	all := func() []audit.Entry {
		list, err := s.ListAudit(ctx, audit.Filter{Limit: 1000})
		require.NoError(t, err)
		return list
	}
	before := all()

	bad := entry("any.action", here, "any")
	bad.Reason = "not storable: \x00"
	calls := map[string]func() error{
		"create project": func() error { return s.CreateProject(ctx, project.Project{Name: "new", CreatedAt: at(0)}, bad) },
		"save draft":     func() error { _, err := s.SaveDraft(ctx, draft("new/new", "x", 0), bad); return err },
		"publish": func() error {
			_, made, err := s.Publish(ctx, version(hello, "2", "sha256:new", 2), longer, bad)
			require.False(t, made)
			return err
		},
		"pause":  func() error { _, err := s.SetPaused(ctx, here, hello, true, "", bad); return err },
		"insert": func() error { _, _, err := s.InsertRun(ctx, newRun("new", 3), bad); return err },
		"remove": func() error {
			removed, err := s.RemoveUnstarted(ctx, "unstarted", bad)
			require.False(t, removed)
			return err
		},
		"cancel": func() error { _, err := s.MarkCancelRequested(ctx, here, "open", "", bad); return err },
		"finish": func() error {
			finished, err := s.FinishMissing(ctx, "open", run.Failed, nil, at(4), bad)
			require.False(t, finished)
			return err
		},
	}
	for name, call := range calls {
		f, ok := apperror.From(call())
		require.True(t, ok, name)
		require.Equal(t, apperror.Invalid, f.Class, name)
	}
	require.Equal(t, before, all())
	_, err := s.GetProject(ctx, "new")
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, "new")
	_, err = s.GetWorkflow(ctx, here, "new/new")
	requireError(t, err, apperror.NotFound, apperror.WorkflowNotFound, "new/new")
	w, err := s.GetWorkflow(ctx, here, hello)
	require.NoError(t, err)
	require.Equal(t, []string{"1", "published"}, []string{w.LatestVersion, w.State})
	_, err = s.Document(ctx, "sha256:new")
	requireError(t, err, apperror.NotFound, apperror.VersionNotFound, "sha256:new")
	_, err = s.GetRun(ctx, here, "new")
	requireError(t, err, apperror.NotFound, apperror.RunNotFound, "new")
	require.Equal(t, run.QueuedStarting, get(t, s, "unstarted").QueuedReason)
	r := get(t, s, "open")
	require.False(t, r.CancelRequested)
	require.Equal(t, run.Queued, r.Status)
}

func testContext(t *testing.T, open Opener) {
	s := open(t)
	require.NoError(t, s.Ping(t.Context()))
	canceled, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the caller left")
	cancel(reason)
	_, _, err := s.InsertRun(canceled, newRun("r1", 1), entry(audit.RunStart, here, "r1"))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, reason)
	_, err = s.ListRuns(canceled, run.Filter{Project: here, Limit: 1})
	require.ErrorIs(t, err, reason)
	late, cancelLate := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancelLate()
	_, err = s.ApplyUpdates(late, []run.Update{state("r1", 1, run.Running)})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = s.GetRun(t.Context(), here, "r1")
	requireError(t, err, apperror.NotFound, apperror.RunNotFound, "r1")
	// The connections work as before.
	insert(t, s, newRun("r1", 1))
}
