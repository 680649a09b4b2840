// Package function offers functions of a program in Go to the workflows of Signalbox.
//
//	func Price(ctx context.Context, order Order) (Price, error) { … }
//
//	functions, err := function.NewSet("pricing", function.New("price", "1.0.0", Price, function.Idempotent()))
//	keys, err := function.OpenKeys("2026-11", map[string]string{"2026-11": "/etc/signalbox/2026-11.key"})
//	manager, err := conn.New(conn.Options{Client: keys.Seal(client.Options{HostPort: "temporal:7233"})})
//	err = functions.Serve(manager, function.Options{Project: "shop"})
//	err = manager.Start(ctx)
//
// Workflows call a function by the name of its definition, [Set.Definitions], which is published in the catalog of the
// project: `call: price:1.0.0@default`. The definition has the JSON Schemas of input and output, made from the Go
// types: what a workflow passes and what it gets is checked against them by the workflow and by the program.
//
// # Execution
//
// A function is an activity on a task queue that belongs to the project and the program. Any number of processes may
// serve it. While none does, calls wait; the platform shows such runs as stuck with NO_POLLER. The context of a
// function ends when the task is canceled, and at its timeout (10 minutes where it has none). Heartbeats are sent for
// it.
//
// A function that returned, with a result or an error, is not executed again. After the loss of its process it is
// executed again, three times in all, if it is [Idempotent] or the task permits it (metadata signalbox.repeat:
// allowed); otherwise the task fails with the communication error "Outcome unknown", 504. [CallOf] has the key that
// repetitions share.
//
// # Errors
//
// A *[dsl.Error] in the chain of the returned error is the error of the task. Any other error, and a panic, is the
// standard error runtime, 500, with the error's text as its detail.
//
// # What it does not do
//
// Inputs and outputs pass through Temporal in one message each, sealed with the keys of the platform: 768 KiB as JSON
// at most, because a program has no access to the stores of large values. The package neither starts workflows nor
// calls the API.
package function

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/signalbox-dev/signalbox/dsl"
)

// Function is a function with its name, version and schemas.
type Function struct {
	name, version string
	idempotent    bool
	input, output *jsonschema.Schema
	call          func(ctx context.Context, input []byte) (any, error)
	err           error // why the function cannot be offered
}

// Option changes a function.
type Option func(*Function)

// Idempotent declares that a function has the effects of one execution when it is executed again with the same key
// ([CallOf]), or has no effects: it is executed again when its result was lost.
func Idempotent() Option { return func(f *Function) { f.idempotent = true } }

// Input replaces the schema that is made from the type of the input, for example by one with bounds of numbers.
func Input(schema *jsonschema.Schema) Option { return func(f *Function) { f.input = schema } }

// Output replaces the schema that is made from the type of the output.
func Output(schema *jsonschema.Schema) Option { return func(f *Function) { f.output = schema } }

// New returns a function. The name has lower-case letters, digits and inner hyphens, the version is semantic. In and
// Out are types that package encoding/json converts; a struct allows no other members than its fields, all of which are
// required unless they are omitempty or omitzero. The tag "jsonschema" of a field is its description. [NewSet] reports
// a type without a schema.
//
// A version never changes: a function with other types, or that does something else, gets another version. A program
// may have several versions of a function.
func New[In, Out any](name, version string, call func(ctx context.Context, input In) (Out, error),
	options ...Option) Function {
	f := Function{name: name, version: version, call: func(ctx context.Context, input []byte) (any, error) {
		var in In
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, &dsl.Error{Type: dsl.ErrorTypeValidation, Status: badInput, Title: "Input not valid",
				Detail: fmt.Sprintf("the input of the function %s:%s: %v", name, version, err)}
		}
		return call(ctx, in)
	}}
	for _, o := range options {
		o(&f)
	}
	if call == nil {
		f.err = fmt.Errorf("the function %q has no code", name)
		return f
	}
	f.input, f.err = schemaOf[In](f.input, f.err)
	f.output, f.err = schemaOf[Out](f.output, f.err)
	return f
}

// schemaOf returns the given schema, or makes that of a type.
func schemaOf[T any](given *jsonschema.Schema, before error) (*jsonschema.Schema, error) {
	if given != nil || before != nil {
		return given, before
	}
	made, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, fmt.Errorf("the type %s has no schema: %w; give one with Input or Output", reflect.TypeFor[T](), err)
	}
	return made, nil
}

// reference returns the name of the function with its version.
func (f *Function) reference() string { return f.name + ":" + f.version }

// Set is the functions that a program offers. It is immutable and safe for concurrent use.
type Set struct {
	program   string
	functions map[string]*registered
	order     []string
}

// registered is a function of a set.
type registered struct {
	Function

	signature        string
	definition       []byte
	accepts, returns *jsonschema.Resolved
}

// NewSet returns the functions of a program, under the name by which their definitions name the program.
func NewSet(program string, functions ...Function) (*Set, error) {
	if !dsl.IsFunctionName(program) {
		return nil, fmt.Errorf("%q is not a name of a program: use up to 63 lower-case letters, digits and inner hyphens",
			program)
	}
	s := &Set{program: program, functions: make(map[string]*registered, len(functions))}
	for _, f := range functions {
		r, err := f.register(program)
		if err != nil {
			return nil, fmt.Errorf("the function %q: %w", f.reference(), err)
		}
		if s.functions[f.reference()] != nil {
			return nil, fmt.Errorf("the function %q is there twice", f.reference())
		}
		s.functions[f.reference()] = r
		s.order = append(s.order, f.reference())
	}
	slices.Sort(s.order)
	return s, nil
}

// register checks a function and makes its definition.
func (f Function) register(program string) (*registered, error) {
	r := &registered{Function: f}
	if f.err != nil {
		return nil, f.err
	}
	var err error
	if r.accepts, err = f.input.Resolve(nil); err != nil {
		return nil, fmt.Errorf("the schema of its input: %w", err)
	}
	if r.returns, err = f.output.Resolve(nil); err != nil {
		return nil, fmt.Errorf("the schema of its output: %w", err)
	}
	signature, err := json.Marshal([]*jsonschema.Schema{f.input, f.output})
	if err != nil {
		return nil, fmt.Errorf("its schemas: %w", err)
	}
	r.signature = dsl.ContentHash(signature)
	if r.definition, err = r.define(program); err != nil {
		return nil, err
	}
	for _, v := range dsl.CheckFunction(f.reference(), r.definition) {
		if v.Severity == dsl.SeverityError {
			return nil, fmt.Errorf("its definition is not valid: %s", v)
		}
	}
	return r, nil
}

// define returns the definition of a function.
func (r *registered) define(program string) ([]byte, error) {
	type document struct {
		Document *jsonschema.Schema `json:"document"`
	}
	type schema struct {
		Schema document `json:"schema"`
	}
	type with struct {
		Program    string `json:"program"`
		Function   string `json:"function"`
		Version    string `json:"version"`
		Signature  string `json:"signature"`
		Idempotent bool   `json:"idempotent,omitempty"`
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(struct {
		Input  schema `json:"input"`
		Call   string `json:"call"`
		With   with   `json:"with"`
		Output schema `json:"output"`
	}{
		schema{document{r.input}}, dsl.CallGo, with{program, r.name, r.version, r.signature, r.idempotent},
		schema{document{r.output}},
	})
	if err != nil {
		return nil, fmt.Errorf("its definition: %w", err)
	}
	return out.Bytes(), nil
}

// Definition is what a workflow needs to know of a function: a function in the form of the language, which checks the
// input, calls the program and checks the output. It is published as NAME:VERSION in the catalog of a project, or
// stands in a file beside the workflow that calls it.
type Definition struct {
	Name, Version string
	// Source is JSON, the same for the same function.
	Source []byte
}

// File is a name for a file with the definition.
func (d Definition) File() string { return d.Name + "-" + d.Version + ".json" }

// Definitions returns the definitions of all functions, by name and version.
func (s *Set) Definitions() []Definition {
	out := make([]Definition, 0, len(s.order))
	for _, reference := range s.order {
		r := s.functions[reference]
		out = append(out, Definition{Name: r.name, Version: r.version, Source: r.definition})
	}
	return out
}
