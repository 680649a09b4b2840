// Package auditfile writes audit entries for programs: as CSV, or as JSON with one entry per line.
//
//	form, err := auditfile.Form("csv")
//	text, err := form.Append(form.Head, entry)
package auditfile

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strings"
	"time"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
)

// Format is how entries are written.
type Format struct {
	// Kind is the content type, Suffix ends the name of such a file, and Head is what it begins with.
	Kind, Suffix string
	Head         []byte

	write func(text []byte, e *signalboxv1.AuditEntry) ([]byte, error)
}

// Append writes an entry behind the text.
func (f Format) Append(text []byte, e *signalboxv1.AuditEntry) ([]byte, error) {
	return f.write(text, e)
}

// Form returns the format of a name: csv, which is also that of the empty name, or json.
func Form(name string) (Format, error) {
	switch name {
	case "", "csv":
		head, err := row(nil, "id", "time", "actor_kind", "actor", "action", "project", "subject", "reason", "detail")
		return Format{"text/csv; charset=utf-8", ".csv", head, asCSV}, err
	case "json":
		return Format{"application/x-ndjson", ".jsonl", nil, asJSON}, nil
	}
	return Format{}, fault.New(fault.Invalid, fault.InvalidArgument, "format %q: use csv, or json for one entry per line", name).
		WithField("format", "must be csv or json")
}

func asJSON(text []byte, e *signalboxv1.AuditEntry) ([]byte, error) {
	text, err := jsoncodec.Append(text, e)
	return append(text, '\n'), err
}

func asCSV(text []byte, e *signalboxv1.AuditEntry) ([]byte, error) {
	return row(text, fmt.Sprint(e.GetId()), e.GetTime().AsTime().Format(time.RFC3339Nano), e.GetActorKind(), cell(e.GetActor()), e.GetAction(),
		e.GetProject(), cell(e.GetSubject()), cell(e.GetReason()), cell(e.GetDetail().GetJson()))
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
