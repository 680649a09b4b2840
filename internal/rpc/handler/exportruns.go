package handler

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/api/httpbody"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
)

// ExportRuns streams the matching runs, newest first, without input and output. Runs created during the export are not
// included.
func (x *Exports) ExportRuns(
	ctx context.Context, req *connect.Request[signalboxv1.ExportRunsRequest],
	stream *connect.ServerStream[httpbody.HttpBody],
) error {
	m := req.Msg
	rows, err := newRows(m.GetFormat(), message.ProjectOf(m.GetProject()), stream)
	if err != nil {
		return err
	}
	err = pages(func(token string) (string, error) {
		list := &signalboxv1.ListRunsRequest{
			Project: m.GetProject(), Filter: m.GetFilter(), PageSize: runsPage, PageToken: token}
		res, err := x.runs.ListRuns(ctx, connect.NewRequest(list))
		if err != nil {
			return "", err
		}
		for _, r := range res.Msg.GetRuns() {
			if err := rows.write(r); err != nil {
				return "", err
			}
		}
		return res.Msg.GetNextPageToken(), nil
	})
	if err != nil {
		return err
	}
	return rows.close()
}

// rows writes a list of runs in one format.
type rows interface {
	write(r *signalboxv1.Run) error
	close() error
}

func newRows(format, project string, stream *connect.ServerStream[httpbody.HttpBody]) (rows, error) {
	name := "runs-" + project + "-" + time.Now().UTC().Format("20060102T150405Z")
	switch format {
	case "", "csv":
		t := &table{file: newFile(stream, "text/csv; charset=utf-8", name+".csv")}
		t.csv = csv.NewWriter(t.file)
		return t, t.csv.Write(columns())
	case "json":
		return lines{newFile(stream, "application/x-ndjson", name+".jsonl")}, nil
	default:
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"format %q: use csv, or json for one run per line", format).
			WithField("format", "must be csv or json")
	}
}

// lines writes runs in the API's JSON, one per line.
type lines struct{ file *file }

func (l lines) write(r *signalboxv1.Run) error {
	if err := l.file.message(r); err != nil {
		return err
	}
	_, err := l.file.Write([]byte("\n"))
	return err
}

func (l lines) close() error { return l.file.close() }

// table writes CSV according to RFC 4180, with a header.
type table struct {
	file *file
	csv  *csv.Writer
}

func columns() []string {
	return []string{
		"id", "project", "workflow", "version", "status", "queued_reason", "waiting_kind", "status_time", "create_time",
		"start_time", "end_time",
		"steps_total", "steps_done", "trigger", "actor", "request_id", "cancel_requested", "cancel_reason",
		"terminate_reason",
		"error_status", "error_type", "error_title", "error_detail", "error_instance", "stuck", "execution_id",
		"behind_since", "labels",
	}
}

func (t *table) write(r *signalboxv1.Run) error {
	runError := r.GetError()
	status := ""
	if runError.GetStatus() != 0 {
		status = strconv.Itoa(int(runError.GetStatus()))
	}
	cells := []string{
		r.GetId(), r.GetProject(), r.GetWorkflow(), r.GetVersion(), r.GetStatus(), r.GetQueuedReason(), r.GetWaitingKind(),
		moment(r.GetStatusTime()), moment(r.GetCreateTime()), moment(r.GetStartTime()), moment(r.GetEndTime()),
		strconv.FormatInt(r.GetStepsTotal(), 10), strconv.FormatInt(r.GetStepsDone(), 10), r.GetTrigger(), r.GetActor(),
		r.GetRequestId(),
		strconv.FormatBool(r.GetCancelRequested()), r.GetCancelReason(), r.GetTerminateReason(),
		status, runError.GetType(), runError.GetTitle(), runError.GetDetail(), runError.GetInstance(), r.GetStuck().GetCode(),
		r.GetTemporal().GetRunId(),
		moment(r.GetBehind().GetSince()), labels(r.GetLabels()),
	}
	for i, cell := range cells {
		cells[i] = escapeFormula(cell)
	}
	if err := t.csv.Write(cells); err != nil {
		return fmt.Errorf("write an export: %w", err)
	}
	return nil
}

// labels returns labels as JSON with sorted keys; empty if there are none.
func labels(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	text, _ := json.Marshal(labels) //nolint:errchkjson // texts always encode
	return string(text)
}

func (t *table) close() error {
	t.csv.Flush()
	if err := t.csv.Error(); err != nil {
		return fmt.Errorf("write an export: %w", err)
	}
	return t.file.close()
}

func moment(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Format(time.RFC3339Nano)
}

// escapeFormula prevents spreadsheets from interpreting a text, which a caller may have chosen, as a formula.
func escapeFormula(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
