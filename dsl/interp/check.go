package interp

import (
	"github.com/signalbox-dev/signalbox/dsl"
)

// part is the part of a task whose value is checked against a schema.
type part string

const (
	partInput  part = "input"
	partOutput part = "output"
	partExport part = "export"
)

// ending is the result of a task that ends.
type ending struct {
	raw, output any
	then        dsl.Flow
}

// check is a check against a schema that only the run knows, from the value to the answer of the call that reads the
// schema. A text is read again by each check.
type check struct {
	part part
	ending
	uri string // of the schema; secrets are placeholders in it
}

// checkLate reads the schema of a check, and goes on with the task then.
func (m *Machine) checkLate(f *frame, c *check) {
	f.check = c
	if c.part != partInput {
		m.closeListener(f)
		m.dropAttemptAlarm(f)
		f.step.resume()
		m.recorder.markDirty(f.step)
	}
	m.readSchema(f)
}

// readSchema requests the schema of a check. While the machine holds, it does so after Restore.
func (m *Machine) readSchema(f *frame) {
	if f.phase = phaseCheck; m.hold {
		m.held = append(m.held, f)
		return
	}
	f.phase = phaseBlocked
	request, runError := m.schemaRequest(f)
	if runError != nil {
		f.check = nil
		m.fail(f, runError)
		return
	}
	f.check.uri = request.URL
	f.call = EffectID(m.newID())
	m.calls[f.call] = f
	m.effects = append(m.effects, Call{
		ID: f.call, StepNumber: f.step.number, Attempt: f.step.attempt, Deadline: f.deadline(),
		Key: callKey(m.start.RunID, f.key), HTTP: request,
	})
}

// schemaRequest evaluates the endpoint of the schema of a check. Its expressions see the value that is checked.
func (m *Machine) schemaRequest(f *frame) (*HTTPRequest, *dsl.Error) {
	t, c, at := f.task, f.check, f.task.Pointer
	var (
		source *dsl.HTTPCall
		value  any
		vars   map[string]any
	)
	switch c.part {
	case partInput:
		source, value, vars = t.Input.Schema.Source, f.value, m.variables(f)
	case partOutput:
		source, value, vars = t.Output.Schema.Source, c.output, m.variables(f)
		f.setOutput(vars, c.raw)
	case partExport:
		var runError *dsl.Error
		source = t.Export.Schema.Source
		if value, vars, runError = m.nextContext(f, c.ending); runError != nil {
			return nil, runError
		}
	}
	fuel := m.fuel()
	uri, err := source.URI(value, vars, fuel)
	m.spend(fuel.Used())
	if runError := expressionError(err, at); runError != nil {
		return nil, runError
	}
	r := &HTTPRequest{Method: "GET", Output: source.Output, Redirect: source.Redirect}
	var runError *dsl.Error
	if r.Authentication, runError = m.authentication(f, source.Authentication, value, vars); runError != nil {
		return nil, runError
	}
	setPlaceholders(r, uri, nil, nil, len(m.doc.Use.Secrets) > 0)
	return r, nil
}

// bytesOfSchemaPerFuel is the number of bytes of a schema whose compilation costs one unit of fuel.
const bytesOfSchemaPerFuel = 4

// schemaRead continues a task whose schema was read. The context may have changed since, so that the one to export is
// computed again.
func (m *Machine) schemaRead(f *frame, result Result) {
	c, at := f.check, f.task.Pointer
	f.check = nil
	if result.Error != nil {
		runError := *result.Error
		runError.Instance = at
		m.propagate(f, raised{runError: runError, retryAfter: retryAfter(result.Attempts)})
		return
	}
	what := "the schema of the task's " + string(c.part)
	text, runError := readText(f, what, c.uri, result)
	if runError != nil {
		m.fail(f, runError)
		return
	}
	m.spend(int64(len(text) / bytesOfSchemaPerFuel))
	schema, err := dsl.ReadSchema(c.uri, text)
	if err != nil {
		m.fail(f, badAnswer(f, what+" at "+c.uri+" is no schema: "+err.Error()))
		return
	}
	switch c.part {
	case partInput:
		m.takeInput(f, schema)
	case partOutput:
		m.giveOutput(f, c.ending, schema)
	case partExport:
		m.giveContext(f, c.ending, schema)
	}
}

// checkState is the saved form of a check whose schema was not requested yet.
type checkState struct {
	Part   part     `json:"part"`
	Raw    int      `json:"raw"`
	Output int      `json:"output"`
	Then   dsl.Flow `json:"then,omitzero"`
}

func (c *check) save(p *valuePool) *checkState {
	if c == nil {
		return nil
	}
	return &checkState{c.part, p.put(c.raw), p.put(c.output), c.then}
}

func (r *restorer) check(s *checkState) *check {
	if s == nil {
		return nil
	}
	return &check{part: s.Part, ending: ending{r.value(s.Raw), r.value(s.Output), s.Then}}
}
