// Package handler implements the methods of the API: it translates between messages and the domain's services and
// contains no other logic. Errors are returned unchanged; package rpc maps them.
//
//	for _, s := range handler.New(handler.Options{Services: handler.Services{Runs: runs, …}, …}) {
//		mux.Handle(s.Path, s.Handler)
//	}
package handler

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/rpc/permission"
)

// Services are what the methods call. All but System and Platform are nil in a process that serves only its own status.
type Services struct {
	// ProbesOnly: the server has probes and metrics, and no service of the API. All other fields are empty then.
	ProbesOnly bool
	// System describes this process, Platform the whole installation.
	System   SystemInfo
	Platform SystemService

	Workflows WorkflowService
	Functions FunctionService
	Runs      RunService
	Projects  ProjectService
	Audit     AuditLog
	// StepValues reads whole values of steps.
	StepValues StepValues
	// Logs reads what programs have printed.
	Logs Logs

	// Each of the others is optional.

	// RunLists provides lists of runs for watches.
	RunLists RunLists
	// Unredacted reads runs without marks; nil if this server never shows sensitive values.
	Unredacted Unredacted
	// Explainer explains what runs wait for.
	Explainer   Explainer
	Annotations Annotations
	Events      EventService
	Dispatchers DispatcherService
	Webhooks    WebhookService
	Views       ViewService
	Problems    ProblemService
	Batches     BatchService
	Quotas      QuotaService
	Tokens      TokenService
	// RunDeliveries provides the deliveries of a run for exports.
	RunDeliveries RunDeliveries
	// Clock provides the timers of workflows.
	Clock Clock
	// Statistics summarises the recent runs of workflows.
	Statistics Statistics
	// Search finds things by texts.
	Search SearchService

	// TemporalNamespace and TaskQueue are shown in runs and projects. TemporalUI is the base address of Temporal's UI, to
	// which runs are linked; empty: they are not.
	TemporalNamespace string
	TemporalUI        string
	TaskQueue         func(project string) string
}

// Options configure the handlers.
type Options struct {
	Services
	// Sessions opens and ends sessions of browsers; optional.
	Sessions SessionService
	// Verify returns the actor of a token that the client at this address sent.
	Verify func(ctx context.Context, remote, token string) (auth.Actor, error)
	// Encrypted is whether the listener uses TLS.
	Encrypted bool
	// Connect are the codecs, limits and interceptors of every service.
	Connect connect.HandlerOption
}

// Service is one Connect service: its path, as generated code returns it, and its handler.
type Service struct {
	Path    string
	Handler http.Handler
}

// New returns the services of the API for which there is a service of the domain.
func New(o Options) (services []Service) {
	add := func(path string, h http.Handler) { services = append(services, Service{Path: path, Handler: h}) }
	if o.ProbesOnly {
		return nil
	}
	add(signalboxv1connect.NewSystemServiceHandler(&System{info: o.System, service: o.Platform}, o.Connect))
	if o.Runs == nil {
		return services
	}
	workflows := &Workflows{
		service: o.Workflows, functions: o.Functions, projects: o.Projects, opts: o.Services, reads: newReadSlots(halfOfProcessors())}
	runs := &Runs{
		service: o.Runs, projects: o.Projects, opts: o.Services, reads: newReadSlots(halfOfProcessors()),
		messages: message.NewRuns(message.RunOptions{
			TemporalNamespace: o.TemporalNamespace, TemporalUI: o.TemporalUI, TaskQueue: o.TaskQueue,
			ControlRoles: permission.ControlRoles()}),
	}
	audit := &Audit{log: o.Audit, projects: o.Projects}
	exports := &Exports{runs: runs, workflows: workflows, audit: audit, deliveries: o.RunDeliveries}
	if o.Events != nil {
		exports.events = &Events{service: o.Events, explainer: o.Explainer}
		add(signalboxv1connect.NewEventServiceHandler(exports.events, o.Connect))
	}
	add(signalboxv1connect.NewWorkflowServiceHandler(workflows, o.Connect))
	add(signalboxv1connect.NewRunServiceHandler(struct {
		*Runs
		*Exports
	}{runs, exports}, o.Connect))
	add(signalboxv1connect.NewProjectServiceHandler(
		&Projects{service: o.Projects, annotations: o.Annotations, taskQueue: o.TaskQueue}, o.Connect))
	add(signalboxv1connect.NewAuditServiceHandler(audit, o.Connect))
	if o.Tokens != nil {
		add(signalboxv1connect.NewTokenServiceHandler(&Tokens{o.Tokens}, o.Connect))
	}
	if o.Sessions != nil {
		add(signalboxv1connect.NewSessionServiceHandler(&Sessions{o}, o.Connect))
	}
	if o.Batches != nil {
		add(signalboxv1connect.NewBatchServiceHandler(&Batches{o.Batches}, o.Connect))
	}
	if o.Problems != nil {
		add(signalboxv1connect.NewProblemServiceHandler(&Problems{o.Problems, o.Projects}, o.Connect))
	}
	if o.Dispatchers != nil {
		add(signalboxv1connect.NewDispatcherServiceHandler(
			&Dispatchers{service: o.Dispatchers, projects: o.Projects}, o.Connect))
		add(signalboxv1connect.NewWorkerServiceHandler(&Workers{service: o.Dispatchers, projects: o.Projects}, o.Connect))
	}
	if o.Views != nil {
		add(signalboxv1connect.NewViewServiceHandler(&Views{o.Views}, o.Connect))
	}
	if o.Webhooks != nil {
		add(signalboxv1connect.NewWebhookServiceHandler(&Webhooks{o.Webhooks}, o.Connect))
	}
	if o.RunLists != nil {
		add(signalboxv1connect.NewWatchServiceHandler(
			&Watches{runs: runs, lists: o.RunLists, batches: o.Batches, engine: o.Platform}, o.Connect))
	}
	if o.Search != nil {
		add(signalboxv1connect.NewSearchServiceHandler(&Searches{o.Search}, o.Connect))
	}
	if o.Quotas != nil {
		add(signalboxv1connect.NewQuotaServiceHandler(&Quotas{o.Quotas}, o.Connect))
	}
	return services
}

// halfOfProcessors is the number of reads of one kind that a project may have in progress.
func halfOfProcessors() int { return runtime.GOMAXPROCS(0) / 2 }

// Page sizes of steps.
const (
	stepsDefault = 200
	stepsMost    = 1000
)

func actorName(ctx context.Context) string {
	actor, _ := auth.ActorFrom(ctx)
	return actor.Name
}

// jsonOf returns nil for an absent value, which differs from the JSON null.
func jsonOf(field string, v *signalboxv1.JsonValue) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	if !json.Valid([]byte(v.GetJson())) {
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument, "the %s is not valid JSON", field).
			WithField(field, "is not valid JSON")
	}
	return json.RawMessage(v.GetJson()), nil
}
