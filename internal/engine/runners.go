package engine

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/sandbox/image"
	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
)

// Programs executes the programs of runs.
type Programs interface {
	// Execute implements flow.ProgramActivity.
	Execute(ctx context.Context, r flow.ProgramRequest) (flow.ProgramResult, error)
}

// RunnerOptions configure the runners of a process.
type RunnerOptions struct {
	Manager  *conn.Manager
	Programs Programs
	// Projects to serve. Empty: all of List.
	Projects []string
	// List lists the projects. nil: only Projects are served.
	List Projects
	// Identity is the name by which the runners poll, a contract.RunnerIdentity.
	Identity string
	// MaxPrograms is how many activities of one project are in progress at once.
	MaxPrograms int
	// StopTimeout is the time for which programs may continue when the process stops.
	StopTimeout time.Duration
	Log         *slog.Logger
}

// Runners poll the task queues of programs: one worker set per project. They register nothing else, so that a process
// with this role alone needs Temporal and the keys of payloads, and no database.
type Runners struct {
	*loop.Loop
	served

	opts RunnerOptions
	life context.Context //nolint:containedctx // the root of activities
}

// NewRunners returns the runners. None polls before Start.
func NewRunners(o RunnerOptions) *Runners {
	r := &Runners{opts: o, served: newServed(o.Manager, contract.RunnersOf(""), "the task queue of the programs",
		func() error {
			_, err := o.Manager.Client()
			return err
		})}
	r.Loop = loop.New(func(ctx, work context.Context) time.Duration {
		r.refresh(ctx, work)
		return refreshEvery
	})
	return r
}

// Start starts the runners. It does not wait for Temporal.
func (r *Runners) Start(ctx context.Context) error {
	r.life = context.WithoutCancel(ctx)
	return r.Loop.Start(ctx)
}

// Stop stops polling and lets programs end within StopTimeout.
func (r *Runners) Stop(ctx context.Context) error {
	if err := r.Loop.Stop(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unregister(ctx)
}

// refresh registers a worker set for every project that is to be served and has none, and unregisters those of the
// others.
func (r *Runners) refresh(ctx, work context.Context) {
	names, err := list(ctx, r.opts.Projects, r.opts.List)
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listErr = err; err != nil {
		r.opts.Log.WarnContext(ctx, "Projects could not be listed", "error", err)
		return
	}
	now := time.Now()
	begin, cease := changes(r.serving, names, func(string) bool { return false }, now)
	for _, name := range begin {
		r.register(name, now, func(c client.Client) (worker.Worker, error) { return r.build(c, name), nil })
	}
	r.listed = true
	for _, name := range cease {
		r.Go(func() {
			if _, err := r.leave(work, name, nil); err != nil && work.Err() == nil {
				r.opts.Log.WarnContext(work, "Workers of a parked project could not be stopped", "project", name, "error", err)
			}
		})
	}
}

func (r *Runners) build(c client.Client, name string) worker.Worker {
	fresh := worker.New(c, contract.RunnerQueue(name), worker.Options{
		DisableWorkflowWorker:              true,
		Identity:                           r.opts.Identity,
		MaxConcurrentActivityExecutionSize: r.opts.MaxPrograms,
		MaxConcurrentActivityTaskPollers:   min(activityPollers, r.opts.MaxPrograms),
		MaxHeartbeatThrottleInterval:       flow.HeartbeatsWithin,
		WorkerStopTimeout:                  r.opts.StopTimeout,
		BackgroundActivityContext:          r.life,
		Interceptors:                       []interceptor.WorkerInterceptor{&activityLog{project: name}},
	})
	fresh.RegisterActivityWithOptions(r.opts.Programs.Execute, activity.RegisterOptions{Name: flow.ProgramActivity})
	return fresh
}

// NewRunnerConnection returns the connection of a process with the role of runners alone: its clients seal and open
// payloads, and store none outside of their messages. It does not dial before [conn.Manager.Start].
func NewRunnerConnection(base conn.Options, keys *keyring.Ring, serverID string, log *slog.Logger) (*conn.Manager,
	error) {
	complete := func(o client.Options) client.Options {
		o.Identity, o.Logger = serverID, logger.ForTemporal(log)
		o.DataConverter, o.FailureConverter = codec.Converter(keys), codec.FailureConverter(keys)
		return o
	}
	base.Client = complete(base.Client)
	if reload := base.Reload; reload != nil {
		base.Reload = func() (client.Options, error) {
			read, err := reload()
			if err != nil {
				return client.Options{}, err
			}
			return complete(read), nil
		}
	}
	return conn.New(base)
}

// PermittedPrograms are the programs that a project may execute.
type PermittedPrograms struct {
	Kinds []string
	// Images are patterns of the images of containers. Empty: no restriction but that of the runner.
	Images []string
	// Limits bound each program, beside those of the runner.
	Limits limit.Limits
}

// image returns the error of a container whose image the project does not permit.
func (p PermittedPrograms) image(r flow.PermitRequest) error {
	if r.Image == "" || len(p.Images) == 0 {
		return nil
	}
	name, err := image.FullName(r.Image)
	if err == nil && image.Permitted(p.Images, name) {
		return nil
	}
	return flow.CallError(flow.CategoryRefused, dsl.Error{
		Type: dsl.ErrorTypeAuthorization, Status: http.StatusForbidden, Title: "Image not permitted",
		Detail: fmt.Sprintf("project %q does not permit the image %.200q; an administrator permits it with "+
			"`signalbox project set %s --images %s`", r.Project, r.Image, r.Project,
			strings.Join(append(slices.Clone(p.Images), "PATTERN"), ",")),
	}, err)
}

// permit is the activity that decides whether a project may execute a program.
func (w *Workers) permit(ctx context.Context, r flow.PermitRequest) (limit.Limits, error) {
	permitted, err := w.opts.Runners(ctx, r.Project)
	if err != nil {
		return limit.Limits{}, err // Temporal repeats it
	}
	if slices.Contains(permitted.Kinds, r.Kind) {
		return permitted.Limits, permitted.image(r)
	}
	return limit.Limits{}, flow.CallError(flow.CategoryRefused, dsl.Error{
		Type: dsl.ErrorTypeAuthorization, Status: http.StatusForbidden, Title: "Program not permitted",
		Detail: fmt.Sprintf("project %q does not permit programs of the kind %s; an administrator enables them with "+
			"`signalbox project set %s --runners %s`", r.Project, r.Kind, r.Project,
			strings.Join(append(slices.Clone(permitted.Kinds), r.Kind), ",")),
	}, nil)
}
