package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/api/httpbody"
	"google.golang.org/protobuf/proto"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
)

// bundleFormat identifies the format of a bundle. Later versions only add members.
const bundleFormat = "signalbox.run/1"

const (
	// runsPage, stepsPage and smallPage are the rows held at a time; values of steps and events have hundreds of KiB.
	runsPage  = 500
	stepsPage = 20
	smallPage = 200
)

// RunDeliveries lists the deliveries of a run: those that started it or woke it, or should have.
type RunDeliveries interface {
	OfRun(ctx context.Context, project, runID string, after *event.DeliveryCursor, limit int) ([]event.Delivery, error)
}

// Exports implements ExportRun and ExportRuns of signalbox.v1.RunService: one run with all its data, and lists of runs
// of any length. Without events and deliveries, bundles have no events.
//
// An export is a stream of google.api.HttpBody: chunks of one file, the first with its content type. Over REST they are
// the response body. The file is built page by page from the API's own responses, so it shows what its caller may read
// and takes the same memory for long and short lists. Names, times and values are those of the API's JSON.
type Exports struct {
	runs       *Runs
	workflows  *Workflows
	audit      *Audit
	events     *Events
	deliveries RunDeliveries
}

// ExportRun streams one JSON document.
func (x *Exports) ExportRun(
	ctx context.Context, req *connect.Request[signalboxv1.ExportRunRequest],
	stream *connect.ServerStream[httpbody.HttpBody],
) error {
	project := message.ProjectOf(req.Msg.GetProject())
	got, err := x.runs.GetRun(ctx,
		connect.NewRequest(&signalboxv1.GetRunRequest{Project: project, Id: req.Msg.GetId()}))
	if err != nil {
		return err
	}
	b := &bundle{Exports: x, run: got.Msg.GetRun(), project: project,
		out: newFile(stream, "application/json", "run-"+req.Msg.GetId()+".json")}
	for _, part := range []func(context.Context) error{b.head, b.version, b.steps, b.logs, b.events, b.audit} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	b.out.text("\n}\n")
	return b.out.close()
}

// bundle is the document of one run while it is written.
type bundle struct {
	*Exports

	run     *signalboxv1.Run
	project string
	out     *file
}

// member starts a member of the document.
func (b *bundle) member(name string) { b.out.text(",\n" + `"` + name + `":`) }

func (b *bundle) head(context.Context) error {
	b.out.text("{\n" + `"format":"` + bundleFormat + `"`)
	b.member("exportTime")
	at, err := json.Marshal(time.Now().UTC())
	if err != nil {
		return fmt.Errorf("write the time of an export: %w", err)
	}
	b.out.text(string(at))
	b.member("run")
	return b.out.message(b.run)
}

// version writes the version that the run is pinned to. It is absent if the workflow was deleted, or published again
// with other content.
func (b *bundle) version(ctx context.Context) error {
	b.member("version")
	got, err := b.workflows.GetWorkflow(ctx, connect.NewRequest(&signalboxv1.GetWorkflowRequest{
		Project: b.project, Workflow: b.run.GetWorkflow(), Version: b.run.GetVersion(),
	}))
	if f, ok := apperror.From(err); ok && (f.Class == apperror.NotFound || f.Class == apperror.Refused) {
		b.out.text("null")
		return nil
	}
	if err != nil {
		return err
	}
	if got.Msg.GetVersion().GetHash() != b.run.GetDocumentHash() {
		b.out.text("null")
		return nil
	}
	return b.out.message(got.Msg.GetVersion())
}

// steps writes all listed steps with their attempts, the summary of the others, and then the current waits.
func (b *bundle) steps(ctx context.Context) error {
	b.member("steps")
	var waits []*signalboxv1.Step
	var summary *signalboxv1.StepSummary
	list := newList(b.out)
	err := pages(func(token string) (string, error) {
		res, err := b.runs.ListSteps(ctx, connect.NewRequest(&signalboxv1.ListStepsRequest{
			Project: b.project, Id: b.run.GetId(), PageSize: stepsPage, PageToken: token,
		}))
		if err != nil {
			return "", err
		}
		summary = res.Msg.GetSummary()
		for _, s := range res.Msg.GetSteps() {
			if s.GetStatus() == "waiting" || s.GetWait() != nil {
				waits = append(waits, &signalboxv1.Step{
					Number: s.GetNumber(), Path: s.GetPath(), Task: s.GetTask(), WaitingKind: s.GetWaitingKind(),
					WaitUntil: s.GetWaitUntil(), StartTime: s.GetStartTime(), Wait: s.GetWait(),
				})
			}
			if err := list.message(s); err != nil {
				return "", err
			}
		}
		return res.Msg.GetNextPageToken(), nil
	})
	if err != nil {
		return err
	}
	list.close()
	if summary != nil { // state at the time the last steps were read
		b.member("stepSummary")
		if err := b.out.message(summary); err != nil {
			return err
		}
	}
	b.member("waits")
	list = newList(b.out)
	for _, w := range waits {
		if err := list.message(w); err != nil {
			return err
		}
	}
	list.close()
	return nil
}

// logs writes what the programs of the run have printed.
func (b *bundle) logs(ctx context.Context) error {
	return writePages(b, "logs", func(token string) ([]*signalboxv1.AttemptLog, string, error) {
		res, err := b.runs.ListLogs(ctx, connect.NewRequest(&signalboxv1.ListLogsRequest{
			Project: b.project, Id: b.run.GetId(), PageSize: logsDefault, PageToken: token,
		}))
		if err != nil {
			return nil, "", err
		}
		return res.Msg.GetLogs(), res.Msg.GetNextPageToken(), nil
	})
}

// events writes the events of the run's deliveries, each once, with the deliveries to this run.
func (b *bundle) events(ctx context.Context) error {
	if b.Exports.events == nil || b.deliveries == nil {
		return nil
	}
	b.member("events")
	list := newList(b.out)
	written := map[int64]bool{}
	var after *event.DeliveryCursor
	for {
		deliveries, err := b.deliveries.OfRun(ctx, b.project, b.run.GetId(), after, smallPage)
		if err != nil {
			return err
		}
		for _, d := range deliveries {
			for _, position := range d.Positions {
				if written[position] {
					continue
				}
				written[position] = true
				if err := b.event(ctx, list, position); err != nil {
					return err
				}
			}
			after = &event.DeliveryCursor{Position: d.Position, ID: d.ID}
		}
		if len(deliveries) < smallPage {
			list.close()
			return nil
		}
	}
}

func (b *bundle) event(ctx context.Context, list *list, position int64) error {
	got, err := b.Exports.events.GetEvent(ctx,
		connect.NewRequest(&signalboxv1.GetEventRequest{Project: b.project, Position: position}))
	if apperror.Is(err, apperror.EventNotFound) {
		return nil // deleted by retention
	}
	if err != nil {
		return err
	}
	own := &signalboxv1.GetEventResponse{Event: got.Msg.GetEvent()}
	for _, d := range got.Msg.GetDeliveries() {
		if d.GetRunId() == b.run.GetId() {
			own.Deliveries = append(own.Deliveries, d)
		}
	}
	return list.message(own)
}

func (b *bundle) audit(ctx context.Context) error {
	return writePages(b, "audit", func(token string) ([]*signalboxv1.AuditEntry, string, error) {
		res, err := b.Exports.audit.ListAudit(ctx, connect.NewRequest(&signalboxv1.ListAuditRequest{
			Project: b.project, Subject: b.run.GetId(), PageSize: smallPage, PageToken: token,
		}))
		if err != nil {
			return nil, "", err
		}
		return res.Msg.GetEntries(), res.Msg.GetNextPageToken(), nil
	})
}

// writePages writes a member with the messages of all pages of a list.
func writePages[M proto.Message](b *bundle, name string, page func(token string) ([]M, string, error)) error {
	b.member(name)
	list := newList(b.out)
	err := pages(func(token string) (string, error) {
		messages, next, err := page(token)
		if err != nil {
			return "", err
		}
		for _, m := range messages {
			if err := list.message(m); err != nil {
				return "", err
			}
		}
		return next, nil
	})
	if err != nil {
		return err
	}
	list.close()
	return nil
}

// pages iterates over the pages of a list.
func pages(page func(token string) (next string, err error)) error {
	token := ""
	for {
		next, err := page(token)
		if err != nil || next == "" {
			return err
		}
		token = next
	}
}

// errDone is returned by writes to a file after an error.
var errDone = errors.New("the export has ended")

// list writes the items of a JSON array.
type list struct {
	out   *file
	begun bool
}

func newList(out *file) *list {
	out.text("[")
	return &list{out: out}
}

func (l *list) message(m proto.Message) error {
	if l.begun {
		l.out.text(",")
	}
	l.begun = true
	l.out.text("\n")
	return l.out.message(m)
}

func (l *list) close() { l.out.text("]") }

// textOf returns the API's JSON of a message.
func textOf(m proto.Message) ([]byte, error) {
	text, err := jsoncodec.Append(nil, m)
	if err != nil {
		return nil, fmt.Errorf("write an export: %w", err)
	}
	return text, nil
}
