package runcmd

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

type startFlags struct {
	Input

	version      string
	wait, dryRun bool
}

// Input is the flags of what a new run is given.
type Input struct {
	invocation.Labels

	input, requestID string
}

// Bind adds the flags.
func (f *Input) Bind(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.input, "input", "i", "",
		"input of the run: a `file` of JSON, - for standard input, or JSON itself; null if absent")
	cmd.Flags().StringVar(&f.requestID, "request-id", "",
		"`ID` of this request, unique in the project; generated when empty")
	f.Labels.Bind(cmd)
}

// request is the request to start a run of a workflow.
func (f *Input) request(s *invocation.Invocation, name, version string) (*signalboxv1.StartRunRequest, error) {
	labels, err := f.Given()
	if err != nil {
		return nil, err
	}
	request := &signalboxv1.StartRunRequest{
		Project: s.Project(), Workflow: name, Version: version, Labels: labels,
		RequestId: cmp.Or(f.requestID, uuid.NewString()),
	}
	if f.input != "" {
		given, err := invocation.ReadJSON("input", f.input, s.In)
		if err != nil {
			return nil, err
		}
		request.Input = &signalboxv1.JsonValue{Json: given}
	}
	return request, nil
}

func startCommand(s *invocation.Invocation) *cobra.Command {
	var flags startFlags
	cmd := &cobra.Command{
		Use:   "start NAME",
		Short: "Start a run of a published workflow",
		Long: `Start a run of a published workflow and print it. NAME is "namespace/name", or "name" alone where that is
unambiguous; "name@version" names a version.

With --wait the command returns when the run has ended, prints it with its output or error, and exits with 0 when it
completed, 10 when it failed, 11 when it was canceled or terminated, 12 when it timed out. If the server
becomes unavailable meanwhile, the command waits for it. Ctrl-C ends the command, not the run.

While Temporal is unavailable the run is refused with exit code 5, or queued if the server is in queue mode; a line on
standard error reports this, and also a start that Temporal has not confirmed yet.

The same request ID starts only one run, however often the command is repeated.`,
		Example: `  signalbox run start hello --input '{"name": "Ada"}' --wait
  signalbox run start shop/order --input order.json --request-id order-4711
  signalbox run start shop/order@1.2.0 --input order.json --dry-run
  signalbox run start shop/order --input order.json --label order=4711 --label region=eu
  cat order.json | signalbox run start shop/order --input - --wait -o json`,
		Args:              invocation.Args(1, 1, "NAME"),
		ValidArgsFunction: s.CompleteWorkflows,
		RunE: func(cmd *cobra.Command, args []string) error {
			return start(cmd.Context(), s, args[0], flags)
		},
	}
	cmd.Flags().StringVar(&flags.version, "version", "", "`version` to run; the newest published one when empty")
	cmd.Flags().BoolVarP(&flags.wait, "wait", "w", false, "return when the run has ended")
	cmd.Flags().BoolVar(&flags.dryRun, "dry-run", false, "only check the request, and start nothing")
	flags.Bind(cmd)
	s.BindClient(cmd)
	return cmd
}

func start(ctx context.Context, s *invocation.Invocation, name string, flags startFlags) error {
	if err := noWait(flags.dryRun, flags.wait); err != nil {
		return err
	}
	name, version, err := invocation.NameAndVersion(name, flags.version)
	if err != nil {
		return err
	}
	request, err := flags.request(s, name, version)
	if err != nil {
		return err
	}
	request.DryRun = flags.dryRun
	return send(ctx, s, request, flags.wait)
}

// Start starts a run of a version of a workflow, prints it, and waits for its end if asked to.
func (f *Input) Start(ctx context.Context, s *invocation.Invocation, name, version string, wait bool) error {
	request, err := f.request(s, name, version)
	if err != nil {
		return err
	}
	return send(ctx, s, request, wait)
}

func send(ctx context.Context, s *invocation.Invocation, request *signalboxv1.StartRunRequest, wait bool) error {
	patience, stop := s.Patience(ctx)
	defer stop()
	response, err := invocation.Send(patience, s, s.Runs().StartRun, request)
	if err != nil {
		return s.FailedHint(err, startedOnce(ctx, err, request.GetRequestId()), "start a run of %q", request.GetWorkflow())
	}
	if request.GetDryRun() {
		return showChecked(s, response.GetRun())
	}
	return showStarted(patience, s, response.GetRun(), response.GetCreated(), wait)
}

// noWait returns an error if a dry run is to wait for a run.
func noWait(dryRun, wait bool) error {
	if dryRun && wait {
		return exit.Usagef("--wait and --dry-run are both given: a dry run starts nothing to wait for")
	}
	return nil
}

// showChecked prints the run that a dry run would start.
func showChecked(s *invocation.Invocation, run *signalboxv1.Run) error {
	when := "now"
	if run.GetQueuedReason() == queuedEngine {
		when = "when Temporal is available; until then it would be queued"
	}
	s.Note("dry run: would start a run of %s %s %s", run.GetWorkflow(), run.GetVersion(), when)
	if s.Format() == output.Table {
		return nil
	}
	return printRun(s, run)
}

// startedOnce describes how to repeat a start with an unknown outcome.
func startedOnce(ctx context.Context, err error, requestID string) string {
	if !invocation.UnknownOutcome(ctx, err) {
		return ""
	}
	return "it is unknown whether the run was started: repeated with --request-id " + requestID +
		", the command starts it once"
}

// showStarted prints a run that was asked for, at once or when it has ended.
func showStarted(ctx context.Context, s *invocation.Invocation, run *signalboxv1.Run, created, wait bool) error {
	if !created {
		s.Note("this run was started before with the request ID %s", run.GetRequestId())
	}
	noteQueued(s, run)
	if !wait {
		if s.Format() == output.Table {
			s.Note("watch it: %s", s.Command("run watch %s", run.GetId()))
		}
		return printRun(s, run)
	}
	s.Note("waiting for the end of run %s", run.GetId())
	follow := newFollower(s, run.GetProject(), run.GetId(), newLines(s.Err, s.ErrStyle()))
	finished, err := follow.untilEnd(ctx)
	if err != nil {
		return err
	}
	if err := printRun(s, finished); err != nil {
		return err
	}
	return outcome(finished.GetStatus())
}

// position says where a run is in its queue, where that is known.
func position(run *signalboxv1.Run) string {
	if run.GetQueuePosition() == 0 {
		return ""
	}
	return fmt.Sprintf(" at position %d", run.GetQueuePosition())
}

// noteQueued prints a note if the run is not in Temporal yet.
func noteQueued(s *invocation.Invocation, run *signalboxv1.Run) {
	switch {
	case run.GetStatus() != statusQueued:
	case run.GetQueuedReason() == queuedEngine:
		line := fmt.Sprintf("Temporal is unavailable: run %s is queued%s, and is started when Temporal is available",
			run.GetId(), position(run))
		if expires := run.GetQueueExpireTime(); expires != nil {
			line += "; unless that is before " + output.Moment(expires) + ", it fails"
		}
		s.Note("%s", line)
	case run.GetQueuedReason() == queuedAdmission:
		s.Note("the limit of concurrent runs of the project is reached: run %s is queued%s, and is started when a slot is "+
			"free", run.GetId(), position(run))
	case run.GetQueuedReason() == queuedStarting:
		s.Note("Temporal has not confirmed the start of run %s yet; it stays queued and is started once, automatically",
			run.GetId())
	}
}
