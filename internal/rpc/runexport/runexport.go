// Package runexport answers the exports of the RunService: one run with everything that is known of it, and lists of runs of any
// length.
//
//	exports := runexport.New(runexport.Options{Runs: runs, Workflows: workflows, Audit: audit, Events: events, Touched: eventService})
//
// An export is a stream of google.api.HttpBody: chunks of one file, the first with its content type; over REST they are the body
// of the answer. It is put together from the API's own answers, page by page, so it shows what its caller would see and takes no
// more memory for a long list than for a short one. Names, times and values are those of the API's JSON.
package runexport

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
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
)

// Format is what a bundle says it is. What it holds only grows.
const Format = "signalbox.run/1"

const (
	// runsPage, stepsPage and smallPage are how many rows are held at a time; steps and events have values of hundreds of KiB.
	runsPage  = 500
	stepsPage = 20
	smallPage = 200
)

// Runs are the runs as the API tells of them.
type Runs interface {
	GetRun(ctx context.Context, req *connect.Request[signalboxv1.GetRunRequest]) (*connect.Response[signalboxv1.GetRunResponse], error)
	ListRuns(ctx context.Context, req *connect.Request[signalboxv1.ListRunsRequest]) (*connect.Response[signalboxv1.ListRunsResponse], error)
	ListSteps(ctx context.Context, req *connect.Request[signalboxv1.ListStepsRequest]) (*connect.Response[signalboxv1.ListStepsResponse], error)
}

// Workflows are the workflows as the API tells of them.
type Workflows interface {
	GetWorkflow(ctx context.Context, req *connect.Request[signalboxv1.GetWorkflowRequest]) (*connect.Response[signalboxv1.GetWorkflowResponse], error)
}

// Audit is the audit log as the API tells of it.
type Audit interface {
	ListAudit(ctx context.Context, req *connect.Request[signalboxv1.ListAuditRequest]) (*connect.Response[signalboxv1.ListAuditResponse], error)
}

// Events are the events as the API tells of them.
type Events interface {
	GetEvent(ctx context.Context, req *connect.Request[signalboxv1.GetEventRequest]) (*connect.Response[signalboxv1.GetEventResponse], error)
}

// Touched knows which deliveries a run had: those that started it or woke it, or should have.
type Touched interface {
	OfRun(ctx context.Context, project, runID string, after *event.DeliveryCursor, limit int) ([]event.Delivery, error)
}

// Options say where everything is read. Without Events and Touched, bundles have no events.
type Options struct {
	Runs      Runs
	Workflows Workflows
	Audit     Audit
	Events    Events
	Touched   Touched
	Now       func() time.Time
}

// Exports answers ExportRun and ExportRuns.
type Exports struct{ opts Options }

// New returns it.
func New(opts Options) *Exports { return &Exports{opts: opts} }

// ExportRun streams one JSON document.
func (x *Exports) ExportRun(
	ctx context.Context, req *connect.Request[signalboxv1.ExportRunRequest], stream *connect.ServerStream[httpbody.HttpBody],
) error {
	project := message.ProjectOf(req.Msg.GetProject())
	got, err := x.opts.Runs.GetRun(ctx, connect.NewRequest(&signalboxv1.GetRunRequest{Project: project, Id: req.Msg.GetId()}))
	if err != nil {
		return err
	}
	b := &bundle{Exports: x, run: got.Msg.GetRun(), project: project, out: newFile(stream, "application/json", "run-"+req.Msg.GetId()+".json")}
	for _, part := range []func(context.Context) error{b.head, b.version, b.steps, b.events, b.audit} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	b.out.text("\n}\n")
	return b.out.close()
}

// bundle is one that is being written.
type bundle struct {
	*Exports

	run     *signalboxv1.Run
	project string
	out     *file
}

// member begins a member of the document.
func (b *bundle) member(name string) { b.out.text(",\n" + `"` + name + `":`) }

func (b *bundle) head(context.Context) error {
	b.out.text("{\n" + `"format":"` + Format + `"`)
	b.member("exportTime")
	at, err := json.Marshal(b.opts.Now().UTC())
	if err != nil {
		return fmt.Errorf("write the time of an export: %w", err)
	}
	b.out.text(string(at))
	b.member("run")
	return b.out.message(b.run)
}

// version is what the run is pinned to. A workflow that was deleted, or published anew with other content, has it no more.
func (b *bundle) version(ctx context.Context) error {
	b.member("version")
	got, err := b.opts.Workflows.GetWorkflow(ctx, connect.NewRequest(&signalboxv1.GetWorkflowRequest{
		Project: b.project, Workflow: b.run.GetWorkflow(), Version: b.run.GetVersion(),
	}))
	if f, ok := fault.From(err); ok && (f.Class == fault.NotFound || f.Class == fault.Refused) {
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

// steps are all that are listed, with their attempts, what is counted of the others, and then once more what is waited for.
func (b *bundle) steps(ctx context.Context) error {
	b.member("steps")
	var waits []*signalboxv1.Step
	var summary *signalboxv1.StepSummary
	list := newList(b.out)
	err := pages(func(token string) (string, error) {
		res, err := b.opts.Runs.ListSteps(ctx, connect.NewRequest(&signalboxv1.ListStepsRequest{
			Project: b.project, Id: b.run.GetId(), PageSize: stepsPage, PageToken: token,
		}))
		if err != nil {
			return "", err
		}
		summary = res.Msg.GetSummary()
		for _, s := range res.Msg.GetSteps() {
			if s.GetStatus() == "waiting" || s.GetWait() != nil {
				waits = append(waits, &signalboxv1.Step{
					Number: s.GetNumber(), Path: s.GetPath(), Task: s.GetTask(), WaitingKind: s.GetWaitingKind(), WaitUntil: s.GetWaitUntil(), StartTime: s.GetStartTime(), Wait: s.GetWait(),
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
	if summary != nil { // as it was when the last steps were read
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

// events are those of the run's deliveries, each once, with the deliveries to this run.
func (b *bundle) events(ctx context.Context) error {
	if b.opts.Events == nil || b.opts.Touched == nil {
		return nil
	}
	b.member("events")
	list := newList(b.out)
	written := map[int64]bool{}
	var after *event.DeliveryCursor
	for {
		deliveries, err := b.opts.Touched.OfRun(ctx, b.project, b.run.GetId(), after, smallPage)
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
	got, err := b.opts.Events.GetEvent(ctx, connect.NewRequest(&signalboxv1.GetEventRequest{Project: b.project, Position: position}))
	if fault.Is(err, fault.EventNotFound) {
		return nil // it was kept long enough
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
	b.member("audit")
	list := newList(b.out)
	err := pages(func(token string) (string, error) {
		res, err := b.opts.Audit.ListAudit(ctx, connect.NewRequest(&signalboxv1.ListAuditRequest{
			Project: b.project, Subject: b.run.GetId(), PageSize: smallPage, PageToken: token,
		}))
		if err != nil {
			return "", err
		}
		for _, e := range res.Msg.GetEntries() {
			if err := list.message(e); err != nil {
				return "", err
			}
		}
		return res.Msg.GetNextPageToken(), nil
	})
	if err != nil {
		return err
	}
	list.close()
	return nil
}

// pages turns the pages of a list.
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

// errDone ends a file that was written to after an error.
var errDone = errors.New("the export has ended")

// list writes the items of an array.
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

// text of a message is the API's JSON.
func textOf(m proto.Message) ([]byte, error) {
	text, err := jsoncodec.Append(nil, m)
	if err != nil {
		return nil, fmt.Errorf("write an export: %w", err)
	}
	return text, nil
}
