package handler

import (
	"context"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
)

// AuditLog reads entries.
type AuditLog interface {
	ListAudit(ctx context.Context, f audit.Filter) ([]audit.Entry, error)
}

// Audit implements signalbox.v1.AuditService.
type Audit struct {
	log      AuditLog
	projects message.ProjectFinder
}

// everywhere stands for all projects and for entries without a project; it is not a valid project name.
const everywhere = "-"

// projectOf returns the project to filter by: empty for everywhere.
func (h *Audit) projectOf(ctx context.Context, name string) (string, error) {
	if name == everywhere {
		return "", nil
	}
	p, err := h.projects.Get(ctx, message.ProjectOf(name))
	return p.Name, err
}

// ListAudit lists entries, newest first.
func (h *Audit) ListAudit(
	ctx context.Context, req *connect.Request[signalboxv1.ListAuditRequest],
) (*connect.Response[signalboxv1.ListAuditResponse], error) {
	m := req.Msg
	since, err := message.Time("since", m.GetSince())
	if err != nil {
		return nil, err
	}
	until, err := message.Time("until", m.GetUntil())
	if err != nil {
		return nil, err
	}
	project, err := h.projectOf(ctx, m.GetProject())
	if err != nil {
		return nil, err
	}
	entries, next, err := listPage(m, pageDefault, pageMost,
		func(after *audit.Cursor, limit int) ([]audit.Entry, error) {
			return h.log.ListAudit(ctx, audit.Filter{
				Project: project, Action: m.GetAction(), Subject: m.GetSubject(), Actor: m.GetActor(),
				Since: since, Until: until, After: after, Limit: limit,
			})
		},
		func(e audit.Entry) audit.Cursor { return audit.Cursor{ID: e.ID} })
	res := &signalboxv1.ListAuditResponse{NextPageToken: next}
	for _, e := range entries {
		res.Entries = append(res.Entries, entryMessage(e))
	}
	return message.Reply(res, err)
}

func entryMessage(e audit.Entry) *signalboxv1.AuditEntry {
	return &signalboxv1.AuditEntry{
		Id: e.ID, Time: message.Timestamp(e.Time), ActorKind: e.Actor.Kind, Actor: e.Actor.Name, Action: e.Action,
		Subject: e.Subject, Reason: e.Reason, Project: e.Project, Detail: message.JSON(e.Detail),
	}
}
