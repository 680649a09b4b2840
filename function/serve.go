package function

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/heartbeat"
	"github.com/signalbox-dev/signalbox/internal/keyring"
)

const badInput = http.StatusBadRequest

// Keys are the keys with which the platform seals what it stores in Temporal.
type Keys struct{ ring *keyring.Ring }

// OpenKeys reads the keys of the platform: files by the ID of their key, as in encryption.keys of its configuration.
// active names the key that seals results; the others only open.
func OpenKeys(active string, files map[string]string) (*Keys, error) {
	list := make([]keyring.KeyFile, 0, len(files))
	for id, file := range files {
		list = append(list, keyring.KeyFile{ID: id, File: file})
	}
	ring, err := keyring.Open(active, list)
	if err != nil {
		return nil, fmt.Errorf("read the keys of the platform: %w", err)
	}
	return &Keys{ring}, nil
}

// Seal returns the options of a client that seals and opens payloads with the keys. conn.Options.Reload must return
// such options too.
func (k *Keys) Seal(o client.Options) client.Options {
	o.DataConverter, o.FailureConverter = codec.Converter(k.ring), codec.FailureConverter(k.ring)
	return o
}

// Options configure how a program serves its functions.
type Options struct {
	// Project is the project whose workflows may call the functions. A program serves several with one call for each.
	Project string
	// MaxConcurrent is how many functions of the project are in progress at once in this process; 0: 100.
	MaxConcurrent int
	// StopTimeout is for how long conn.Manager.Stop waits for functions in progress. Those that go on longer are lost with
	// the process. 0: 10 seconds.
	StopTimeout time.Duration
	// Log receives the panics of functions, with their stacks; nil: they are not logged.
	Log *slog.Logger
}

const (
	defaultConcurrent = 100
	defaultStop       = 10 * time.Second
	pollers           = 4
)

// Serve lets a connection poll the task queue of the functions for a project, as long as it is up. It may be called
// before and after the manager has started. Its error is that of a wrong or repeated project.
func (s *Set) Serve(m *conn.Manager, o Options) error {
	if o.Project == "" || strings.ContainsAny(o.Project, "/.") {
		return fmt.Errorf("%q is not a name of a project", o.Project)
	}
	if o.MaxConcurrent == 0 {
		o.MaxConcurrent = defaultConcurrent
	}
	if o.StopTimeout == 0 {
		o.StopTimeout = defaultStop
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	execute := &executor{set: s, log: o.Log}
	return m.Register("functions of "+s.program+" for "+o.Project, func(c client.Client) (worker.Worker, error) {
		w := worker.New(c, contract.FunctionQueue(o.Project, s.program), worker.Options{
			DisableWorkflowWorker:              true,
			MaxConcurrentActivityExecutionSize: o.MaxConcurrent,
			MaxConcurrentActivityTaskPollers:   min(pollers, o.MaxConcurrent),
			MaxHeartbeatThrottleInterval:       flow.HeartbeatsWithin,
			WorkerStopTimeout:                  o.StopTimeout,
		})
		w.RegisterActivityWithOptions(execute.run, activity.RegisterOptions{Name: flow.FunctionActivity})
		return w, nil
	})
}

// Call is the call of a function.
type Call struct {
	Project, RunID    string
	Function, Version string
	// Key identifies the call: executions with the same key are repetitions of one call. It suits as the idempotency key
	// of requests that the function sends.
	Key string
}

type callKey struct{}

// CallOf returns the call that a function executes, from its context; the zero value outside of a call, such as in a
// test.
func CallOf(ctx context.Context) Call {
	call, _ := ctx.Value(callKey{}).(Call)
	return call
}

// executor executes the functions of a set.
type executor struct {
	set *Set
	log *slog.Logger
}

// run is the activity.
func (e *executor) run(ctx context.Context, r flow.FunctionRequest) (flow.FunctionResult, error) {
	f := e.set.functions[r.Function+":"+r.Version]
	switch {
	case f == nil:
		return flow.FunctionResult{}, temporal.NewApplicationErrorWithOptions(
			fmt.Sprintf("a process of the program %q does not have the function %s:%s; start one that has it", e.set.program,
				r.Function, r.Version), flow.FunctionMissing, temporal.ApplicationErrorOptions{
				Category: temporal.ApplicationErrorCategoryBenign,
			})
	case r.Signature != "" && r.Signature != f.signature:
		return flow.FunctionResult{}, flow.CallError(flow.CategoryRefused, dsl.Error{
			Type: dsl.ErrorTypeConfiguration, Status: http.StatusConflict, Title: "Function differs",
			Detail: fmt.Sprintf("the program %q has the function %s with other schemas than those that the workflow was "+
				"published with: give the function another version, publish its definition, and keep the old version in the "+
				"program for as long as workflows call it", e.set.program, f.reference()),
		}, nil)
	}
	defer heartbeat.Keep(ctx)()
	bounded, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	call := Call{Project: r.Project, RunID: r.RunID, Function: r.Function, Version: r.Version, Key: r.Key}
	output, err := e.call(context.WithValue(bounded, callKey{}, call), f, r.Input)
	switch {
	case err == nil:
		return flow.FunctionResult{Output: output}, nil
	case ctx.Err() != nil:
		return flow.FunctionResult{}, flow.Interrupted(fmt.Sprintf("the function was ended: %v", err))
	}
	return flow.FunctionResult{}, failure(f, bounded.Err(), r.Timeout, err)
}

// call calls a function with an input, and returns its output as JSON.
func (e *executor) call(ctx context.Context, f *registered, input []byte) (output json.RawMessage, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			e.log.ErrorContext(ctx, "A function panicked", "function", f.reference(), "panic", panicked,
				"stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	if err := conform(f.accepts, input); err != nil {
		return nil, &dsl.Error{Type: dsl.ErrorTypeValidation, Status: badInput, Title: "Input not valid",
			Detail: fmt.Sprintf("the input of the function %s: %v", f.reference(), err)}
	}
	result, err := f.Function.call(ctx, input)
	if err != nil {
		return nil, err
	}
	if output, err = json.Marshal(result); err == nil {
		err = conform(f.returns, output)
	}
	if limit := flow.DefaultLimits().ProgramBytes; err == nil && len(output) > limit {
		return nil, &dsl.Error{Type: dsl.ErrorTypeValidation, Status: http.StatusRequestEntityTooLarge,
			Title: "Value too large", Detail: fmt.Sprintf("the output of the function %s has %d bytes as JSON, more than the "+
				"limit of %d: return less, or a reference to it", f.reference(), len(output), limit)}
	}
	if err != nil {
		return nil, &dsl.Error{Type: dsl.ErrorTypeValidation, Status: badInput, Title: "Output not valid",
			Detail: fmt.Sprintf("the output of the function %s: %v", f.reference(), err)}
	}
	return output, nil
}

// conform returns the error of a value that does not match a schema.
func conform(schema interface{ Validate(value any) error }, encoded []byte) error {
	var value any
	if err := json.Unmarshal(encoded, &value); err != nil {
		return err
	}
	return schema.Validate(value)
}

// failure returns the error of the task for the error of a function.
func failure(f *registered, ended error, timeout time.Duration, err error) error {
	runError := dsl.Error{
		Type: dsl.ErrorTypeRuntime, Status: http.StatusInternalServerError, Title: "Function failed", Detail: err.Error(),
	}
	if returned, is := errors.AsType[*dsl.Error](err); is {
		runError = *returned
		if runError.Type == "" {
			runError.Type = dsl.ErrorTypeRuntime
		}
		if runError.Status == 0 {
			runError.Status = http.StatusInternalServerError
		}
	} else if errors.Is(ended, context.DeadlineExceeded) {
		runError = dsl.Error{
			Type: dsl.ErrorTypeTimeout, Status: http.StatusRequestTimeout, Title: "Function too slow",
			Detail: fmt.Sprintf("the function %s did not end within %s: %v", f.reference(), timeout, err),
		}
	}
	return flow.CallError(flow.CategoryAnswered, runError, nil)
}
