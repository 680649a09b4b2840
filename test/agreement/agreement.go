// Package agreement compares runs of the platform with runs of `signalbox workflow test`: the test of a run is made as
// `workflow test --from-run` makes it, and its run must have the same status, output, error, order of tasks, requests
// and events.
//
//	services := agreement.Record(handler) // serves the requests of the run
//	… a run ends …
//	err := agreement.Compare(ctx, agreement.Run{Export: export, Document: doc, Exchanges: services.Take()})
package agreement

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/workflowtest"
	"github.com/signalbox-dev/signalbox/internal/cli/runcase"
)

// Run is a run of the platform that has ended, or waits for events.
type Run struct {
	// Export is what `signalbox run export ID` prints.
	Export []byte
	// Document is the document with the resources that it refers to.
	Document *dsl.Document
	Secrets  map[string]any
	// Input is the input of the run with its credentials, which the export replaces by marks. nil: that of the export.
	Input any
	// Exchanges are the requests that services received, with their responses. nil: they are not known, and the case has
	// the responses that the export shows.
	Exchanges []Exchange
	// Events are those that the run emitted, in their CloudEvents JSON form. nil: they are not compared.
	Events []map[string]any
	// Correct completes the case with what its Missing names; nil: such a run is not compared.
	Correct func(*workflowtest.Case)
}

// ErrIncomplete is the error for a run that does not show all that its case needs.
var ErrIncomplete = errors.New("the run does not show all that it received")

// exported is the part of an export that is compared.
type exported struct {
	Run struct {
		ID, Status    string
		Input, Output any
		Error         *struct {
			Type, Title, Detail, Instance string
			Status                        int
		}
	}
	Steps []struct{ Path, Status string }
}

// Compare returns what is different between a run and that of its test; nil: nothing.
func Compare(ctx context.Context, run Run) error {
	var on exported
	if err := json.Unmarshal(run.Export, &on); err != nil {
		return fmt.Errorf("read the export: %w", err)
	}
	c, err := caseOf(run)
	if err != nil {
		return err
	}
	result := workflowtest.Execute(ctx, run.Document, *c)
	var found []error
	for _, m := range result.Mismatches {
		expected := strings.HasPrefix(m.What, "output") || strings.HasPrefix(m.What, "error") // compared below
		if !expected && (run.Exchanges == nil && run.Correct == nil || m.What != "mocks") {
			found = append(found, fmt.Errorf("%s: %s", m.What, m.Message))
		}
	}
	same := func(what string, platform, test any) {
		platform, test = normal(platform, on.Run.ID), normal(test, on.Run.ID)
		if !reflect.DeepEqual(platform, test) {
			found = append(found, fmt.Errorf("the %s differ:\n  platform: %s\n  test:     %s", what, text(platform), text(test)))
		}
	}
	same("statuses", on.Run.Status, result.Status)
	if on.Run.Status == string(interp.StatusCompleted) {
		same("outputs", on.Run.Output, result.Output)
	}
	if e := on.Run.Error; e != nil {
		same("errors", dsl.Error{Type: e.Type, Status: e.Status, Title: e.Title, Detail: e.Detail, Instance: e.Instance},
			result.Error)
	}
	var platform, test []string
	for _, step := range on.Steps {
		platform = append(platform, step.Path+" "+step.Status)
	}
	for _, step := range result.Steps {
		test = append(test, step.Path+" "+string(step.Status))
	}
	same("steps", byBranch(platform), byBranch(test))
	if run.Exchanges != nil {
		same("requests", received(run.Exchanges), sent(result.Requests))
	}
	if run.Events != nil {
		same("events", attributes(run.Events), attributes(result.Events))
	}
	return errors.Join(found...)
}

// caseOf returns the case of a run.
func caseOf(run Run) (*workflowtest.Case, error) {
	written, err := runcase.Write(run.Export)
	if err != nil {
		return nil, fmt.Errorf("write the case: %w", err)
	}
	if len(written.Missing) > 0 && run.Exchanges == nil && run.Correct == nil {
		return nil, fmt.Errorf("%w: %q", ErrIncomplete, written.Missing)
	}
	file, violations := workflowtest.Parse(written.Text)
	if len(violations) > 0 {
		return nil, fmt.Errorf("the case has errors: %w\n%s", violations, written.Text)
	}
	c := file.Case(0)
	if run.Secrets != nil {
		c.Secrets = run.Secrets
	}
	if run.Input != nil {
		c.Input = run.Input
	}
	if run.Exchanges != nil {
		// What the services answered is known in full; that a call got no response in time, only from the run.
		late, others := split(c.Mocks, func(m workflowtest.Mock) bool {
			return slices.ContainsFunc(m.Respond, func(r workflowtest.Response) bool { return r.Delay > 0 || r.Fail != nil })
		})
		c.Mocks = slices.Concat(late, mocks(run.Exchanges), others)
	}
	if run.Correct != nil {
		run.Correct(&c)
	}
	return &c, nil
}

func split[T any](all []T, first func(T) bool) (chosen, others []T) {
	for _, item := range all {
		if first(item) {
			chosen = append(chosen, item)
		} else {
			others = append(others, item)
		}
	}
	return chosen, others
}

// branch is the innermost branch of a fork that a step is in.
var branch = regexp.MustCompile(`^.*/branches/\d+/`)

// byBranch orders steps by the branches that they are in: branches run at the same time, so that only the order within
// each is certain.
func byBranch(steps []string) []string {
	out := slices.Clone(steps)
	slices.SortStableFunc(out, func(a, b string) int { return strings.Compare(branch.FindString(a), branch.FindString(b)) })
	return out
}

var (
	agents = regexp.MustCompile(`signalbox/[^" ]+`)
	times  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	ids    = regexp.MustCompile(`child-\d+|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// normal returns a value as plain JSON, without what two runs have of their own: IDs, times, and the
// version of the program.
func normal(v any, id string) any {
	encoded := strings.ReplaceAll(text(v), id, "test")
	encoded = agents.ReplaceAllString(ids.ReplaceAllString(times.ReplaceAllString(encoded, "TIME"), "ID"), "signalbox")
	var out any
	if err := json.Unmarshal([]byte(encoded), &out); err != nil {
		panic(fmt.Sprintf("a replaced text is no JSON: %v", err)) // the texts have no quotes
	}
	return out
}

func text(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(fmt.Sprintf("encode a value: %v", err)) // values of runs are JSON
	}
	return strings.TrimSpace(b.String())
}

// attributes returns events without what is their own: IDs and times.
func attributes(events []map[string]any) []map[string]any {
	out := make([]map[string]any, 0, len(events))
	for _, e := range events {
		own := map[string]any{}
		for name, value := range e {
			if name != "id" && name != "time" {
				own[name] = value
			}
		}
		out = append(out, own)
	}
	slices.SortFunc(out, func(a, b map[string]any) int { return strings.Compare(text(a), text(b)) })
	return out
}
