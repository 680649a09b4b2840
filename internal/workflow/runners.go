package workflow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
)

// Runner is a connected runner of a project.
type Runner struct {
	ID string
	// Isolations are how it isolates the programs that it executes, by kind, or by language for scripts; nil where they
	// are not known.
	Isolations map[string]string
}

// FindRunners returns the connected runners of a project.
type FindRunners func(ctx context.Context, project string) ([]Runner, error)

// SetRunners makes checks warn of programs that no connected runner of the project executes, and of those that are
// executed without isolation. Call it before the service is used.
func (s *Service) SetRunners(find FindRunners) { s.runners = find }

// notIsolated is the isolation of programs that are executed without one.
const notIsolated = "none"

// runnersTimeout bounds the question for the runners of a project.
const runnersTimeout = 3 * time.Second

// unexecuted returns warnings for the programs of a document, one for each kind, that no connected runner of the project
// executes, or that one executes without isolation. There are none where the runners are not known.
func (s *Service) unexecuted(ctx context.Context, projectName string, doc *dsl.Document) (out dsl.Violations) {
	if s.runners == nil || len(doc.Programs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, runnersTimeout)
	defer cancel()
	found, err := s.runners(ctx, projectName)
	if err != nil {
		return nil
	}
	var names []string
	for _, program := range doc.Programs {
		if slices.Contains(names, program.Name()) {
			continue
		}
		names = append(names, program.Name())
		if message, suggestion := programWarning(program, projectName, found); message != "" {
			out = append(out, dsl.Violation{
				Severity: dsl.SeverityWarning, Code: dsl.CodeRunner, Path: program.Path, Pos: program.Pos, Message: message,
				Suggestion: suggestion,
			})
		}
	}
	return out
}

// programWarning returns a warning for a program with these runners; empty texts where there is none.
func programWarning(program dsl.UsedProgram, projectName string, runners []Runner) (message, suggestion string) {
	if len(runners) == 0 {
		return fmt.Sprintf("no runner of the project %q is connected, which would execute %s", projectName, program.Name()),
			"start a process with the role runner; until then the task waits"
	}
	var refusing, open []string
	for _, r := range runners {
		switch isolation, executes := r.Isolations[program.Key()]; {
		case r.Isolations == nil:
		case !executes:
			refusing = append(refusing, r.ID)
		case isolation == notIsolated:
			open = append(open, r.ID)
		}
	}
	switch {
	case len(refusing) == len(runners):
		return fmt.Sprintf("no connected runner of the project %q executes %s: %s", projectName, program.Name(),
				"refused by "+strings.Join(refusing, ", ")),
			"give a runner an isolation for them (runner.isolation, runner.containers); its log has the reason"
	case len(refusing) > 0:
		return fmt.Sprintf("not every connected runner of the project %q executes %s: refused by %s", projectName,
			program.Name(), strings.Join(refusing, ", ")), "give all runners of a project the same isolation: any of them may get the task"
	case len(open) > 0:
		return fmt.Sprintf("%s are executed without isolation by %s", program.Name(), strings.Join(open, ", ")),
			"set runner.isolation of the runner to another value than none"
	}
	return "", ""
}
