package handler

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"time"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
)

// auditFormat is a file format of audit entries, for programs: CSV, or JSON with one entry per line.
//
//	form, err := auditFormatOf("csv")
//	text, err := form.write(form.head, entry)
type auditFormat struct {
	// kind is the content type, suffix the file name's extension, and head the start of the file.
	kind, suffix string
	head         []byte
	// write appends an entry to the text.
	write func(text []byte, e *signalboxv1.AuditEntry) ([]byte, error)
}

// auditFormatOf returns the format with this name: csv, the default, or json.
func auditFormatOf(name string) (auditFormat, error) {
	switch name {
	case "", "csv":
		head, err := auditRow(nil, "id", "time", "actor_kind", "actor", "action", "project", "subject", "reason", "detail")
		return auditFormat{"text/csv; charset=utf-8", ".csv", head, auditCSV}, err
	case "json":
		return auditFormat{"application/x-ndjson", ".jsonl", nil, auditJSON}, nil
	}
	return auditFormat{}, apperror.New(apperror.Invalid, apperror.InvalidArgument,
		"format %q: use csv, or json for one entry per line", name).
		WithField("format", "must be csv or json")
}

func auditJSON(text []byte, e *signalboxv1.AuditEntry) ([]byte, error) {
	text, err := jsoncodec.Append(text, e)
	return append(text, '\n'), err
}

func auditCSV(text []byte, e *signalboxv1.AuditEntry) ([]byte, error) {
	return auditRow(text, fmt.Sprint(e.GetId()), e.GetTime().AsTime().Format(time.RFC3339Nano), e.GetActorKind(),
		escapeFormula(e.GetActor()), e.GetAction(),
		e.GetProject(), escapeFormula(e.GetSubject()), escapeFormula(e.GetReason()), escapeFormula(e.GetDetail().GetJson()))
}

func auditRow(text []byte, cells ...string) ([]byte, error) {
	out := bytes.NewBuffer(text)
	w := csv.NewWriter(out)
	if err := w.Write(cells); err != nil {
		return nil, fmt.Errorf("write a line of CSV: %w", err)
	}
	w.Flush()
	return out.Bytes(), w.Error()
}
