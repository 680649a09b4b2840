package runcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

func logsCommand(s *invocation.Invocation) *cobra.Command {
	p := &logPrinter{invocation: s, printed: map[logKey]*[2]int64{}}
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs ID [STEP]",
		Short: "Print what the scripts, commands and containers of a run printed",
		Long: `Print what the programs of a run (scripts, shell commands, containers) have printed, by step and attempt: their standard output to
standard output, their standard error to standard error, with a line before each attempt on standard error. STEP is the number of a
step.

Of each stream the last 128 KiB are kept, and deleted with the run. The log of a program that runs has the last 16 KiB, a few seconds old,
in whole lines. Sensitive values are redacted. A program that its task does not await has no log.`,
		Example: `  signalbox run logs 0199a4f2
  signalbox run logs 0199a4f2 1 --follow
  signalbox run logs 0199a4f2 -o json`,
		Args:              invocation.Args(1, 2, "ID [STEP]"),
		ValidArgsFunction: s.CompleteRuns,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			p.id = args[0]
			if len(args) == 2 {
				if p.step, err = stepNumber(args[1]); err != nil {
					return err
				}
			}
			if p.attempt < 0 {
				return exit.Usagef("attempt %d: give the number of an attempt, from 1", p.attempt)
			}
			if !follow {
				return p.all(cmd.Context())
			}
			patience, stop := s.Patience(cmd.Context())
			defer stop()
			return p.follow(patience)
		},
	}
	cmd.Flags().Int32Var(&p.attempt, "attempt", 0, "only this `attempt` of each step, from 1")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false,
		"print what follows until the run, or the step, has ended; with -o json, print all then")
	s.BindRuns(cmd, 1)
	return cmd
}

// logKey identifies an attempt.
type logKey struct {
	number  int64
	attempt int32
}

// logPrinter prints the logs of a run.
type logPrinter struct {
	invocation *invocation.Invocation
	id         string
	step       int64 // 0: all
	attempt    int32 // 0: all

	current logKey               // whose heading was printed last
	printed map[logKey]*[2]int64 // the number of lines of both streams, of attempts that had not ended
	ended   map[logKey]bool
	unknown string // why the logs of programs that run were unknown when they were read last
}

// list returns the logs; with running those of programs that run.
func (p *logPrinter) list(ctx context.Context, running bool) ([]*signalboxv1.AttemptLog, error) {
	s := p.invocation
	request := &signalboxv1.ListLogsRequest{Project: s.Project(), Id: p.id, Number: p.step, Running: running}
	var unknown string
	logs, _, err := invocation.Pages(0, func(_ int32, token string) ([]*signalboxv1.AttemptLog, string, error) {
		request.PageToken = token
		response, err := invocation.Send(ctx, s, s.Runs().ListLogs, request)
		unknown = response.GetRunningError()
		return response.GetLogs(), response.GetNextPageToken(), err
	})
	if unknown != "" && p.unknown == "" {
		s.Note("the logs of programs that run are unknown: %s", terminal.Line(unknown))
	}
	p.unknown = unknown
	return slices.DeleteFunc(logs, func(l *signalboxv1.AttemptLog) bool {
		return p.attempt != 0 && l.GetAttempt() != p.attempt
	}), err
}

func (p *logPrinter) failed(err error) error {
	return p.invocation.Failed(err, "read the logs of run %q", p.id)
}

// all prints the logs that there are.
func (p *logPrinter) all(ctx context.Context) error {
	logs, err := p.list(ctx, false)
	if err != nil {
		return p.failed(err)
	}
	if p.invocation.Format().Structured() {
		return invocation.Listing[*signalboxv1.AttemptLog]{Thing: "log"}.Print(p.invocation, logs, false)
	}
	if len(logs) == 0 && p.unknown == "" {
		p.invocation.Note("no program has printed anything")
	}
	return p.print(logs)
}

// followEvery is the interval between reads of programs that run.
const followEvery = time.Second

// follow prints logs until the run, or the step, has ended.
func (p *logPrinter) follow(ctx context.Context) error {
	structured := p.invocation.Format().Structured()
	sequence := int64(-1)
	for tries := 0; ; {
		over, changed, err := p.state(ctx)
		var logs []*signalboxv1.AttemptLog
		if err == nil && !structured {
			logs, err = p.list(ctx, changed == sequence && !over)
		}
		switch {
		case err == nil && over && structured:
			return p.all(ctx)
		case err == nil:
			if tries, sequence = 0, changed; over || len(logs) > 0 {
				if err := p.print(logs); err != nil || over {
					return err
				}
			}
		case ctx.Err() != nil:
		case !passing(err) || sequence < 0: // no retries before the first answer: the address may be wrong
			return p.failed(err)
		default:
			if tries++; tries == 1 {
				p.invocation.Note("%s does not answer; trying again", p.invocation.Address())
			}
		}
		if !loop.Sleep(ctx, followEvery) {
			return p.interrupted(ctx)
		}
	}
}

func (p *logPrinter) interrupted(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return exit.Errorf(exit.RunTimedOut, "follow the logs of run %q: it has not ended within --timeout; it continues",
			p.id)
	}
	return exit.Errorf(exit.Interrupted, "interrupted; run %q continues", p.id)
}

// state returns whether the run, or the step, has ended, and what changes with each log of a program that has ended.
func (p *logPrinter) state(ctx context.Context) (over bool, changed int64, err error) {
	s := p.invocation
	if p.step != 0 {
		response, err := invocation.Send(ctx, s, s.Runs().GetStep,
			&signalboxv1.GetStepRequest{Project: s.Project(), Id: p.id, Number: p.step})
		return response.GetStep().GetEndTime() != nil, response.GetStep().GetSequence(), err
	}
	response, err := invocation.Send(ctx, s, s.Runs().GetRun,
		&signalboxv1.GetRunRequest{Project: s.Project(), Id: p.id})
	return hasEnded(response.GetRun().GetStatus()), response.GetRun().GetSequence(), err
}

// print prints what it has not printed yet of logs.
func (p *logPrinter) print(logs []*signalboxv1.AttemptLog) error {
	for _, l := range logs {
		key := logKey{l.GetNumber(), l.GetAttempt()}
		if p.ended[key] {
			continue
		}
		lines := p.printed[key]
		if lines == nil {
			lines = new([2]int64)
			p.printed[key] = lines
			p.heading(key, l)
		}
		for i, stream := range []*signalboxv1.LogStream{l.GetStdout(), l.GetStderr()} {
			to := p.invocation.Out
			if i == 1 {
				to = p.invocation.Err
			}
			fresh, missing := unprinted(stream, lines[i])
			if len(fresh) == 0 && missing == "" {
				continue
			}
			p.heading(key, l)
			if missing != "" {
				p.invocation.Note("%s of standard %s are not kept", missing, []string{"output", "error"}[i])
			}
			for _, line := range fresh {
				if _, err := io.WriteString(to, terminal.Line(line)+"\n"); err != nil {
					return err
				}
			}
			lines[i] = max(lines[i], stream.GetSkippedLines()) + int64(len(fresh))
		}
		if !l.GetRunning() {
			if p.ended == nil {
				p.ended = map[logKey]bool{}
			}
			p.ended[key] = true
		}
	}
	return nil
}

// heading prints whose log follows, unless it is the last one's.
func (p *logPrinter) heading(key logKey, l *signalboxv1.AttemptLog) {
	if p.current != key {
		p.current = key
		p.invocation.Note("step %d %s, attempt %d", key.number, terminal.Line(l.GetTask()), key.attempt)
	}
}

// unprinted returns the lines of a stream after those that were printed, and what is missing between them.
func unprinted(stream *signalboxv1.LogStream, printed int64) (fresh []string, missing string) {
	if stream.GetText() != "" {
		fresh = strings.Split(strings.TrimSuffix(stream.GetText(), "\n"), "\n")
	}
	skipped := stream.GetSkippedLines()
	switch {
	case skipped > printed:
		missing = output.Count(skipped-printed, "line")
	case skipped == 0 && stream.GetSkippedBytes() > 0 && printed == 0:
		missing = fmt.Sprintf("the first %s", output.Bytes(stream.GetSkippedBytes()))
	default:
		fresh = fresh[min(int64(len(fresh)), printed-skipped):]
	}
	return fresh, missing
}
