package interp

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp/internal/payload"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// RunProgram requests the execution of a program, and a Complete whose value is a [ProgramResult]. If the task does not
// await the program, the Complete follows its start, and its value is not used.
type RunProgram struct {
	ID         EffectID
	StepNumber int64
	// Deadline is the time at which the task's own timeout ends the program; zero: it has none.
	Deadline time.Time
	// Key is as in Call: of two executions under one key, the second is a repetition of the first.
	Key string
	// Once: the program is started at most once, whatever happens to its result.
	Once    bool
	Awaited bool
	Program *Program
}

func (RunProgram) effect() {}

// Program is a program with all expressions evaluated.
type Program struct {
	Kind     dsl.ProgramKind
	Language dsl.ScriptLanguage // of a script
	// Code is the code of a script, or the command of a shell or a container.
	Code string
	// Source identifies the text that the code was read from, where that happened during the run; nil otherwise.
	Source *Source
	Stdin  string
	// Arguments are texts. Named are arguments in the form of older releases of the language; at most one of both is set.
	Arguments   []string
	Named       map[string]any
	Environment map[string]string
	Container   *Container
}

// Source is a text that was read during the run.
type Source struct {
	URI  string // secrets are placeholders in it
	Hash string // see [dsl.ContentHash]
}

// Container is what only a container has.
type Container struct {
	Image, Name string
	// Ports are the container's ports by the host's; Volumes the container's paths by the host's.
	Ports, Volumes map[string]string
	PullPolicy     dsl.PullPolicy
	Cleanup        dsl.Cleanup
	After          time.Duration // of [dsl.CleanupEventually]
}

// ProgramResult is the result of a program that ended by itself.
type ProgramResult struct {
	Code           int
	Stdout, Stderr string
}

// maxShownStderr is how many bytes from the end of its standard error the error of a failed program shows.
const maxShownStderr = 2 << 10

// startProgram reads the source of a program, if only the run knows it, and otherwise requests the program.
func (m *Machine) startProgram(f *frame, b *dsl.RunProgram) {
	if b.Source == nil {
		m.requestProgram(f, b, nil)
		return
	}
	request, runError := m.httpRequest(f, b.Source)
	if runError != nil {
		m.fail(f, runError)
		return
	}
	f.source = &Source{URI: request.URL}
	m.sendRequest(f, request)
}

// sourceRead requests a program whose source was read. Its attempts begin anew.
func (m *Machine) sourceRead(f *frame, b *dsl.RunProgram, result Result) {
	source := f.source
	f.source = nil
	content, runError := readText(f, "the source of the program", source.URI, result)
	if runError != nil {
		m.endAttempts(f, result.Attempts, runError)
		m.fail(f, runError)
		return
	}
	source.Hash = dsl.ContentHash(content)
	f.step.attempts, f.step.method, f.step.host, f.step.requests = nil, "", "", false
	m.requestProgram(f, b, &read{source, string(content)})
}

// readText returns the text of a resource that a call has read.
func readText(f *frame, what, uri string, result Result) ([]byte, *dsl.Error) {
	encoded, _ := result.Value.(string)
	content, err := base64.StdEncoding.DecodeString(encoded)
	status := http.StatusOK
	if n := len(result.Attempts); n > 0 {
		status = result.Attempts[n-1].Status
	}
	switch {
	case err != nil || !utf8.Valid(content):
		return nil, badAnswer(f, what+" at "+uri+" is not a text in UTF-8")
	case status >= http.StatusMultipleChoices:
		return nil, badAnswer(f, fmt.Sprintf("GET %s answered %d without a text", uri, status))
	}
	return content, nil
}

// badAnswer is the error of a task that has read a resource which it cannot use.
func badAnswer(f *frame, detail string) *dsl.Error {
	runError := newError(dsl.ErrorTypeCommunication, http.StatusBadGateway, f.task.Pointer, detail)
	runError.Title = "Bad answer"
	return &runError
}

// read is the source of a program with its content.
type read struct {
	source *Source
	code   string
}

// requestProgram evaluates a program and emits its effect.
func (m *Machine) requestProgram(f *frame, b *dsl.RunProgram, from *read) {
	program, runError := m.program(f, b)
	if runError != nil {
		m.fail(f, runError)
		return
	}
	if from != nil {
		program.Source, program.Code = from.source, from.code
	}
	f.call = EffectID(m.newID())
	m.calls[f.call] = f
	f.step.beginAttempt(1, m.now)
	m.recorder.markDirty(f.step)
	m.effects = append(m.effects, RunProgram{
		ID: f.call, StepNumber: f.step.number, Deadline: f.deadline(), Key: callKey(m.start.RunID, f.key),
		Once: f.task.ForbidsRepeat(), Awaited: b.Await, Program: program,
	})
}

// programDone ends a task whose program has ended by itself or, if the task does not await it, has started. A program
// with another exit code than 0 fails the task, unless the task returns the code.
func (m *Machine) programDone(f *frame, b *dsl.RunProgram, value any) {
	if !b.Await {
		m.endAttempts(f, nil, nil)
		m.finish(f, f.input, f.task.Then)
		return
	}
	r, _ := value.(ProgramResult)
	if r.Code != 0 && b.Return != dsl.ReturnAll && b.Return != dsl.ReturnCode {
		runError := newError(dsl.ErrorTypeRuntime, 500, f.task.Pointer, programFailure(b, r))
		runError.Title = "Program failed"
		m.endAttempts(f, nil, &runError)
		m.propagate(f, raised{runError: runError})
		return
	}
	m.endAttempts(f, nil, nil)
	m.finish(f, programOutput(b.Return, r), f.task.Then)
}

// programFailure describes a program that ended with another exit code than 0.
func programFailure(b *dsl.RunProgram, r ProgramResult) string {
	text := "the " + string(b.Program) + " ended with exit code " + string(payload.Encode(r.Code))
	shown := strings.TrimSpace(r.Stderr)
	if len(shown) > maxShownStderr {
		shown = "…" + strings.ToValidUTF8(shown[len(shown)-maxShownStderr:], "")
	}
	if shown != "" {
		text += ": " + shown
	}
	return text
}

// programOutput returns the output of a task after its program has ended.
func programOutput(what dsl.Return, r ProgramResult) any {
	switch what {
	case dsl.ReturnNone:
		return nil
	case dsl.ReturnCode:
		return r.Code
	case dsl.ReturnStderr:
		return r.Stderr
	case dsl.ReturnAll:
		return map[string]any{"code": r.Code, "stdout": r.Stdout, "stderr": r.Stderr}
	case dsl.ReturnStdout:
	}
	return r.Stdout
}

// program evaluates the expressions of a program.
func (m *Machine) program(f *frame, b *dsl.RunProgram) (p *Program, runError *dsl.Error) {
	vars := m.variables(f)
	p = &Program{Kind: b.Program, Language: b.Language}
	if p.Code, runError = m.optionalText(f, b.Code, vars); runError != nil {
		return nil, runError
	}
	if p.Stdin, runError = m.stdin(f, b, vars); runError != nil {
		return nil, runError
	}
	if runError = m.arguments(f, b, vars, p); runError != nil {
		return nil, runError
	}
	environment := "run." + string(b.Program) + ".environment"
	if p.Environment, runError = m.texts(f, b.Environment, vars, environment); runError != nil {
		return nil, runError
	}
	if b.Container != nil {
		p.Container, runError = m.container(f, b.Container, vars)
	}
	return p, runError
}

func (m *Machine) container(f *frame, b *dsl.Container, vars map[string]any) (c *Container, runError *dsl.Error) {
	c = &Container{PullPolicy: b.PullPolicy, Cleanup: b.Cleanup}
	if c.Image, runError = m.optionalText(f, b.Image, vars); runError != nil {
		return nil, runError
	}
	if c.Name, runError = m.optionalText(f, b.Name, vars); runError != nil {
		return nil, runError
	}
	if c.Ports, runError = m.texts(f, b.Ports, vars, "run.container.ports"); runError != nil {
		return nil, runError
	}
	if c.Volumes, runError = m.texts(f, b.Volumes, vars, "run.container.volumes"); runError != nil {
		return nil, runError
	}
	if b.After != nil {
		c.After, runError = m.duration(b.After, f.input, vars, f.task.Pointer)
	}
	return c, runError
}

// optionalText evaluates a template that must result in a text; nil results in the empty one.
func (m *Machine) optionalText(f *frame, t *dsl.Template, vars map[string]any) (string, *dsl.Error) {
	if t == nil {
		return "", nil
	}
	return m.text(t, f.input, vars, f.task.Pointer)
}

// stdin evaluates the standard input of a program: a text as it is, null as nothing, another value as JSON.
func (m *Machine) stdin(f *frame, b *dsl.RunProgram, vars map[string]any) (string, *dsl.Error) {
	if b.Stdin == nil {
		return "", nil
	}
	v, runError := m.template(b.Stdin, f.input, vars, f.task.Pointer)
	if runError != nil || v == nil {
		return "", runError
	}
	return argument(v), nil
}

// arguments evaluates the arguments of a program.
func (m *Machine) arguments(f *frame, b *dsl.RunProgram, vars map[string]any, p *Program) *dsl.Error {
	if b.Arguments == nil {
		return nil
	}
	v, runError := m.template(b.Arguments, f.input, vars, f.task.Pointer)
	if runError != nil {
		return runError
	}
	switch v := v.(type) {
	case nil:
	case []any:
		p.Arguments = make([]string, len(v))
		for i, item := range v {
			p.Arguments[i] = argument(item)
		}
	case map[string]any:
		p.Named = v
	default:
		runError := newError(dsl.ErrorTypeExpression, 400, f.task.Pointer,
			"run."+string(b.Program)+".arguments must give an array, got "+jq.TypeName(v))
		return &runError
	}
	return nil
}

// argument returns a value as text: a text as it is, another value as JSON.
func argument(v any) string {
	if text, is := v.(string); is {
		return text
	}
	return string(payload.Encode(v))
}

// texts evaluates a template that must result in an object of texts, without secrets.
func (m *Machine) texts(f *frame, t *dsl.Template, vars map[string]any, what string) (map[string]string, *dsl.Error) {
	values, runError := m.strings(f, t, vars, what)
	if runError != nil || len(values) == 0 {
		return nil, runError
	}
	out := make(map[string]string, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out[name], _ = values[name].(string) // secrets are allowed in calls alone
	}
	return out, nil
}
