// Package runcase writes a case of a test from a run that has ended, so that a failure of production becomes a test.
//
//	written, err := runcase.Write(export) // what `signalbox run export ID` prints
//	os.WriteFile("order.test.yaml", written.Text, 0o644)
//
// It makes no I/O. A run does not keep everything that it received: Missing names what its author must complete before
// the case does what the run did.
package runcase

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/dsl/taskindex"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// fillIn stands in a case for a value that a run does not show.
const fillIn = "FILL-IN"

// ErrNoExport is the error for a text that is no export of a run.
var ErrNoExport = errors.New("it is no export of a run: make it by signalbox run export ID")

// Case is the test of a run.
type Case struct {
	Text []byte // a test file with one case
	// Missing is what the run does not show and its author must complete, one sentence each. Without any, the case does
	// what the run did.
	Missing []string
	// Notes is what its author should know beside that.
	Notes []string
}

// exportedRun is the part of an export of a run that a case needs. Values keep the digits of their numbers.
type exportedRun struct {
	Format string
	Run    struct {
		ID, Workflow, Version, Status string
		WaitingKind                   string
		StartTime                     time.Time
		Input, Output                 json.RawMessage
		Redacted                      bool
		Error                         *exportedError
	}
	Version *struct{ Source string }
	Steps   []exportedStep
	Events  []struct{ Event map[string]any }
	Summary json.RawMessage `json:"stepSummary"`
}

type exportedError struct {
	Type, Title, Detail, Instance string
	Status                        int
}

type exportedStep struct {
	Pointer, Task, Kind, Status string
	Output                      json.RawMessage
	OutputShortened             json.RawMessage
	Error                       *exportedError
	Attempts                    []struct{ HTTPStatus int }
}

// recordedFile is a test file that is written.
type recordedFile struct {
	Secrets map[string]any `yaml:"secrets,omitempty"`
	Cases   []recordedCase `yaml:"cases"`
}

type recordedCase struct {
	Name   string          `yaml:"name"`
	Now    string          `yaml:"now"`
	Input  any             `yaml:"input"`
	Mocks  []*Mock         `yaml:"mocks,omitempty"`
	Events []recordedEvent `yaml:"events,omitempty"`
	Expect map[string]any  `yaml:"expect"`
}

// Mock is a mock that is written.
type Mock struct {
	Task    string     `yaml:"task"`
	Respond []Response `yaml:"respond"`
}

type recordedEvent struct {
	Event map[string]any `yaml:"event"`
}

// Response is a response of a mock, with a comment above it.
type Response struct {
	Members map[string]any
	Comment string // what of the response is not known; empty: nothing
}

// MarshalYAML implements [yaml.Marshaler].
func (r Response) MarshalYAML() (any, error) {
	var node yaml.Node
	if err := node.Encode(r.Members); err != nil {
		return nil, err
	}
	node.HeadComment = r.Comment
	return &node, nil
}

// Write returns a case that does what a run did.
func Write(export []byte) (*Case, error) {
	var run exportedRun
	if err := json.Unmarshal(export, &run); err != nil || run.Format != "signalbox.run/1" {
		return nil, ErrNoExport
	}
	if run.Version == nil {
		return nil, fmt.Errorf("its version %s was deleted, or published again with other content", run.Run.Version)
	}
	doc, violations := dsl.ParseStructure([]byte(run.Version.Source))
	if doc == nil {
		return nil, fmt.Errorf("its version has errors: %w", violations)
	}
	input, err := decoded(run.Run.Input)
	if err != nil {
		return nil, err
	}
	r := &recorder{doc: doc, run: &run, tasks: taskindex.Of(doc), mocks: map[string]*Mock{}}
	r.record.Name = fmt.Sprintf("run %s of %s %s", run.Run.ID, run.Run.Workflow, run.Run.Version)
	r.record.Now, r.record.Input = run.Run.StartTime.UTC().Format(time.RFC3339Nano), input
	if r.record.Expect, err = r.expectation(); err != nil {
		return nil, err
	}
	for i := range run.Steps {
		if err := r.step(&run.Steps[i]); err != nil {
			return nil, err
		}
	}
	r.events()
	file := &recordedFile{Secrets: r.secrets(), Cases: []recordedCase{r.record}}
	r.remarks(file)
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2) //nolint:mnd // as workflow format does
	if err := encoder.Encode(file); err != nil {
		return nil, err
	}
	return &Case{Text: text.Bytes(), Missing: slices.Compact(r.missing), Notes: r.notes}, nil
}

func decoded(text json.RawMessage) (any, error) {
	if len(text) == 0 {
		return nil, nil
	}
	return jq.DecodeJSON(text)
}

// remarks notes what the author must fill in, and what the case cannot show.
func (r *recorder) remarks(file *recordedFile) {
	if len(file.Secrets) > 0 {
		r.notes = append(r.notes, "the secrets are marks: replace "+fillIn+" by values for tests, if their content matters")
	}
	if r.run.Run.Redacted {
		r.missing = append(r.missing, "values of the run are redacted: replace their marks by values for tests")
	}
	if len(r.run.Summary) > 0 && string(r.run.Summary) != "null" {
		r.missing = append(r.missing, "not all steps of the run are kept: the responses to the others are missing")
	}
	r.notes = append(r.notes, fmt.Sprintf("a case with %s and %s is written",
		output.Count(int64(len(r.record.Mocks)), "mock"), output.Count(int64(len(r.record.Events)), "event")))
}
