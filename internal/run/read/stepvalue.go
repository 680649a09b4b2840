package read

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jellydator/ttlcache/v3"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// StepValueRuns reads runs and their steps as the rows show them.
type StepValueRuns interface {
	Get(ctx context.Context, project, id string) (run.Run, error)
	Steps(ctx context.Context, project, id string, f run.StepFilter) (run.StepPage, error)
}

// StepValueSource reads values without marks from where the run was recorded. The error is [run.ErrNotKnown] if they
// are not there any more.
type StepValueSource interface {
	StepValue(ctx context.Context, r run.Run, step run.Step, output bool) (json.RawMessage, error)
}

// StepValueRedactor replaces the sensitive parts of the input or output of a step by marks.
type StepValueRedactor interface {
	StepValue(ctx context.Context, runID string, at redact.Location, value json.RawMessage) (json.RawMessage, error)
}

// StepValueOptions configure a reader.
type StepValueOptions struct {
	Runs     StepValueRuns
	Source   StepValueSource
	Redactor StepValueRedactor
}

// StepValueRequest names a value, or a part of one.
type StepValueRequest struct {
	Project, RunID string
	// Number is the step's, from 1.
	Number int64
	// Output selects the output instead of the input.
	Output bool
	// Pointer is the JSON pointer (RFC 6901) of a part of the value; empty for all of it.
	Pointer string
}

const (
	// keptValues is the number of values that are kept, for keptFor. A value has at most 16 MiB where it enters or leaves
	// a run.
	keptValues    = 4
	keptValuesFor = time.Minute
	// maxValueReads is the number of histories that are interpreted at a time.
	maxValueReads = 2
)

// StepValueReader reads the inputs and outputs of steps whole: rows have shortened forms of those over 16 KiB. It is
// safe for concurrent use.
//
// A whole value is not stored a second time. It follows from the run's history in Temporal, which is interpreted again
// to read it, and is available as long as that history. Sensitive values are redacted before anything of the value is
// selected. The last values are kept for a minute, for callers that read them page by page.
type StepValueReader struct {
	opts  StepValueOptions
	last  *ttlcache.Cache[stepValueKey, json.RawMessage]
	slots chan struct{}
}

// stepValueKey identifies a value of a step. A later change of the step has another sequence.
type stepValueKey struct {
	run              string
	number, sequence int64
	output           bool
}

// NewStepValueReader returns a reader.
func NewStepValueReader(opts StepValueOptions) *StepValueReader {
	return &StepValueReader{
		opts: opts, slots: make(chan struct{}, maxValueReads),
		last: ttlcache.New(ttlcache.WithCapacity[stepValueKey, json.RawMessage](keptValues),
			ttlcache.WithTTL[stepValueKey, json.RawMessage](keptValuesFor),
			ttlcache.WithDisableTouchOnHit[stepValueKey, json.RawMessage]()),
	}
}

// Read returns the JSON of a value, with marks in place of sensitive values.
func (v *StepValueReader) Read(ctx context.Context, req StepValueRequest) (json.RawMessage, error) {
	page, err := v.opts.Runs.Steps(ctx, req.Project, req.RunID, run.StepFilter{After: req.Number - 1, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(page.Steps) == 0 || page.Steps[0].Number != req.Number {
		return nil, run.NoStep(req.RunID, req.Number)
	}
	step := page.Steps[0]
	value, size := step.Input, step.InputSize
	if req.Output {
		value, size = step.Output, step.OutputSize
	}
	if size > 0 {
		if value, err = v.whole(ctx, req, step); err != nil {
			return nil, err
		}
	}
	return valuePart(value, req)
}

// whole reads a value of which the row has a shortened form.
func (v *StepValueReader) whole(ctx context.Context, req StepValueRequest, step run.Step) (json.RawMessage, error) {
	this := stepValueKey{run: req.RunID, number: step.Number, sequence: step.Sequence, output: req.Output}
	if found := v.last.Get(this); found != nil {
		return found.Value(), nil
	}
	r, err := v.opts.Runs.Get(ctx, req.Project, req.RunID)
	if err != nil {
		return nil, err
	}
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if found := v.last.Get(this); found != nil { // another caller has read it meanwhile
		return found.Value(), nil
	}
	value, err := v.opts.Source.StepValue(ctx, r, step, req.Output)
	if errors.Is(err, run.ErrNotKnown) {
		return nil, apperror.New(apperror.NotFound, apperror.ValueNotRecorded,
			"the %s of step %d of run %q is not available whole: Temporal does not have the history of its execution any "+
				"more", req.side(), step.Number, req.RunID).
			WithCause(err)
	}
	if err != nil {
		return nil, err
	}
	value, err = v.opts.Redactor.StepValue(ctx, req.RunID,
		redact.Location{Pointer: step.Pointer, Task: step.Task, Output: req.Output}, value)
	if err != nil {
		return nil, err
	}
	v.last.Set(this, value, ttlcache.DefaultTTL)
	return value, nil
}

func (r StepValueRequest) side() string {
	if r.Output {
		return "output"
	}
	return "input"
}

// valuePart returns the part of a value at the pointer of a request.
func valuePart(value json.RawMessage, req StepValueRequest) (json.RawMessage, error) {
	missing := func(why string) error {
		return apperror.New(apperror.NotFound, apperror.ValueNotRecorded,
			"the %s of step %d of run %q has no value at %q: %s",
			req.side(), req.Number, req.RunID, req.Pointer, why).WithField("pointer", "%s", why)
	}
	if len(value) == 0 {
		return nil, missing("the step has no " + req.side())
	}
	if req.Pointer == "" {
		return value, nil
	}
	tokens := strings.Split(req.Pointer, "/")
	if tokens[0] != "" {
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument, "%q is no JSON pointer: it begins with /",
			req.Pointer).
			WithField("pointer", "must begin with /")
	}
	for _, token := range tokens[1:] {
		next, why := valueChild(value, redact.UnescapePart(token))
		if why != "" {
			return nil, missing(why)
		}
		value = next
	}
	return value, nil
}

// valueChild returns a member or an item of a value, or why there is none.
func valueChild(value json.RawMessage, name string) (found json.RawMessage, why string) {
	switch bytes.TrimLeft(value, " \t\r\n")[0] { // the values of rows are not empty
	case '{':
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) == nil && members[name] != nil {
			return members[name], ""
		}
		return nil, "an object has no member " + strconv.Quote(name)
	case '[':
		var items []json.RawMessage
		if json.Unmarshal(value, &items) == nil {
			if index, ok := redact.PartIndex(name, len(items)); ok {
				return items[index], ""
			}
		}
		return nil, "an array has no item " + strconv.Quote(name)
	default:
		return nil, strconv.Quote(name) + " is in neither an object nor an array"
	}
}
