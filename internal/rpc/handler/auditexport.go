package handler

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"mime"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/api/httpbody"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
)

// exportPage is how many entries are read and sent at a time.
const exportPage = 500

// ExportAudit streams the entries that match, oldest first. Those that are made meanwhile are not in it.
func (h *Audit) ExportAudit(
	ctx context.Context, req *connect.Request[signalboxv1.ExportAuditRequest], stream *connect.ServerStream[httpbody.HttpBody],
) error {
	m := req.Msg
	form, err := formOf(m.GetFormat())
	if err != nil {
		return err
	}
	filter := audit.Filter{Action: m.GetAction(), Subject: m.GetSubject(), Actor: m.GetActor(), OldestFirst: true, Limit: exportPage}
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
		mime.FormatMediaType("attachment", map[string]string{"filename": "audit-" + time.Now().UTC().Format("20060102T150405Z") + form.suffix}))
	text := form.head
	for more := len(newest) > 0; more; {
		entries, err := h.log.ListAudit(ctx, filter)
		if err != nil {
			return err
		}
		more = len(entries) == exportPage
		for _, e := range entries {
			if e.ID > newest[0].ID {
				more = false
				break
			}
			if text, err = form.add(text, e); err != nil {
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

// form is how entries are written.
type form struct {
	kind, suffix string
	head         []byte
	// add appends an entry to the text.
	add func(text []byte, e audit.Entry) ([]byte, error)
}

func formOf(name string) (form, error) {
	switch name {
	case "", "csv":
		head, err := row(nil, "id", "time", "actor_kind", "actor", "action", "project", "subject", "reason", "detail")
		return form{"text/csv; charset=utf-8", ".csv", head, csvEntry}, err
	case "json":
		return form{"application/x-ndjson", ".jsonl", nil, func(text []byte, e audit.Entry) ([]byte, error) {
			text, err := jsoncodec.Append(text, entryMessage(e))
			return append(text, '\n'), err
		}}, nil
	}
	return form{}, fault.New(fault.Invalid, fault.InvalidArgument, "format %q: use csv, or json for one entry per line", name).
		WithField("format", "must be csv or json")
}

func csvEntry(text []byte, e audit.Entry) ([]byte, error) {
	return row(text, fmt.Sprint(e.ID), e.Time.UTC().Format(time.RFC3339Nano), e.Actor.Kind, cell(e.Actor.Name), e.Action, e.Project,
		cell(e.Subject), cell(e.Reason), cell(string(e.Detail)))
}

// cell keeps a spreadsheet from taking for a formula what somebody wrote as a reason.
func cell(text string) string {
	if strings.ContainsAny(text[:min(1, len(text))], "=+-@\t\r") {
		return "'" + text
	}
	return text
}

func row(text []byte, cells ...string) ([]byte, error) {
	out := bytes.NewBuffer(text)
	w := csv.NewWriter(out)
	if err := w.Write(cells); err != nil {
		return nil, fmt.Errorf("write a line of CSV: %w", err)
	}
	w.Flush()
	return out.Bytes(), w.Error()
}
