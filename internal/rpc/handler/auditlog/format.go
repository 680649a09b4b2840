package auditlog

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strings"
	"time"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
)

// Format is a file format of audit entries, for programs: CSV, or JSON with one entry per line.
//
//	form, err := auditlog.FormatOf("csv")
//	text, err := form.Append(form.Head, entry)
type Format struct {
	// Kind is the content type, Suffix the file name's extension, and Head the start of the file.
	Kind, Suffix string
	Head         []byte

	write func(text []byte, e *signalboxv1.AuditEntry) ([]byte, error)
}

// Append appends an entry to the text.
func (f Format) Append(text []byte, e *signalboxv1.AuditEntry) ([]byte, error) {
	return f.write(text, e)
}

// FormatOf returns the format with this name: csv, the default, or json.
func FormatOf(name string) (Format, error) {
	switch name {
	case "", "csv":
		head, err := row(nil, "id", "time", "actor_kind", "actor", "action", "project", "subject", "reason", "detail")
		return Format{"text/csv; charset=utf-8", ".csv", head, asCSV}, err
	case "json":
		return Format{"application/x-ndjson", ".jsonl", nil, asJSON}, nil
	}
	return Format{}, apperror.New(apperror.Invalid, apperror.InvalidArgument,
		"format %q: use csv, or json for one entry per line", name).
		WithField("format", "must be csv or json")
}

func asJSON(text []byte, e *signalboxv1.AuditEntry) ([]byte, error) {
	text, err := jsoncodec.Append(text, e)
	return append(text, '\n'), err
}

func asCSV(text []byte, e *signalboxv1.AuditEntry) ([]byte, error) {
	return row(text, fmt.Sprint(e.GetId()), e.GetTime().AsTime().Format(time.RFC3339Nano), e.GetActorKind(),
		escapeFormula(e.GetActor()), e.GetAction(),
		e.GetProject(), escapeFormula(e.GetSubject()), escapeFormula(e.GetReason()), escapeFormula(e.GetDetail().GetJson()))
}

// escapeFormula prevents spreadsheets from interpreting a reason, which callers write, as a formula.
func escapeFormula(text string) string {
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
