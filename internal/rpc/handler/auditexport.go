package handler

import (
	"context"
	"mime"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/api/httpbody"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
)

// auditPage is the number of entries read and sent at a time.
const auditPage = 500

// ExportAudit streams the matching entries, oldest first. Entries written during the export are not included.
func (h *Audit) ExportAudit(
	ctx context.Context, req *connect.Request[signalboxv1.ExportAuditRequest],
	stream *connect.ServerStream[httpbody.HttpBody],
) error {
	m := req.Msg
	form, err := auditFormatOf(m.GetFormat())
	if err != nil {
		return err
	}
	filter := audit.Filter{Action: m.GetAction(), Subject: m.GetSubject(), Actor: m.GetActor(), OldestFirst: true,
		Limit: auditPage}
	if filter.Since, err = message.Time("since", m.GetSince()); err != nil {
		return err
	}
	if filter.Until, err = message.Time("until", m.GetUntil()); err != nil {
		return err
	}
	if filter.Project, err = h.projectOf(ctx, m.GetProject()); err != nil {
		return err
	}
	newest, err := h.log.ListAudit(ctx, audit.Filter{Project: filter.Project, Limit: 1})
	if err != nil {
		return err
	}
	stream.ResponseHeader().Set("Content-Disposition",
		mime.FormatMediaType("attachment",
			map[string]string{"filename": "audit-" + time.Now().UTC().Format("20060102T150405Z") + form.suffix}))
	text := form.head
	for more := len(newest) > 0; more; {
		entries, err := h.log.ListAudit(ctx, filter)
		if err != nil {
			return err
		}
		more = len(entries) == auditPage
		for _, e := range entries {
			if e.ID > newest[0].ID {
				more = false
				break
			}
			if text, err = form.write(text, entryMessage(e)); err != nil {
				return err
			}
			filter.After = &audit.Cursor{ID: e.ID}
		}
		if more {
			if err := stream.Send(&httpbody.HttpBody{ContentType: form.kind, Data: text}); err != nil {
				return err
			}
			text = nil
		}
	}
	return stream.Send(&httpbody.HttpBody{ContentType: form.kind, Data: text})
}
