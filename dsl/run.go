package dsl

import "github.com/signalbox-dev/signalbox/dsl/internal/tree"

// RunWorkflow runs another workflow, as a run of its own.
type RunWorkflow struct {
	Namespace, Name string
	// Version is that of the workflow; empty: the latest when the task begins.
	Version string
	Input   *Template // nil: the task's input
	// Await defines whether the task waits for the end of that run. If not, its output is its input.
	Await bool
	// Return selects the output of a task that waits.
	Return Return
}

// Kind implements Body.
func (*RunWorkflow) Kind() Kind { return KindRun }

// Return selects the results of a process that are the output of the task that ran it.
type Return string

// The values of return. For a workflow, the standard output is its output, the exit code is that of a success, and
// there is no error output.
const (
	ReturnStdout Return = "stdout"
	ReturnStderr Return = "stderr"
	ReturnCode   Return = "code"
	ReturnAll    Return = "all"
	ReturnNone   Return = "none"
)

// latest is the version by which a document requests the latest one.
const latest = "latest"

func (p *parser) runTask(task value, c taskContext) Body {
	var (
		body  Body
		await = true
		what  = ReturnStdout
		vars  = c.scope.at(slotTask)
	)
	child := &RunWorkflow{}
	program := func(kind ProgramKind, read func(value, *RunProgram, []string)) func(value) {
		return func(v value) {
			b := &RunProgram{Program: kind}
			read(v, b, vars)
			p.programs = append(p.programs, UsedProgram{Program: b.Program, Language: b.Language, Path: v.path, Pos: v.pos()})
			body = b
		}
	}
	v, _ := task.member("run")
	known := p.object(v, "run", fields{
		{"workflow", false, func(v value) {
			p.workflowCall(v, child, vars)
			body = child
		}},
		{string(ProgramContainer), false, program(ProgramContainer, p.container)},
		{string(ProgramScript), false, program(ProgramScript, p.script)},
		{string(ProgramShell), false, program(ProgramShell, p.shell)},
		{"await", false, func(v value) { await = p.boolean(v, "run.await") }},
		{"return", false, func(v value) {
			what = Return(p.oneOf(v, "run.return",
				string(ReturnStdout), string(ReturnStderr), string(ReturnCode), string(ReturnAll), string(ReturnNone)))
		}},
	})
	if known {
		p.checkOneProcess(v)
	}
	switch b := body.(type) {
	case *RunProgram:
		b.Await, b.Return = await, what
		return b
	default:
		child.Await, child.Return = await, what
		return child
	}
}

// checkOneProcess reports a run task that runs nothing, or several things.
func (p *parser) checkOneProcess(v value) {
	n := 0
	for _, key := range []string{"workflow", "container", "script", "shell"} {
		if v.node.Get(key) != nil {
			n++
		}
	}
	switch {
	case n == 0:
		p.report(CodeMissingKey, v, "", "run needs one of the keys workflow, container, script and shell")
	case n > 1:
		p.report(CodeValue, v, "make each a task of its own",
			"run must have exactly one of workflow, container, script and shell")
	}
}

func (p *parser) workflowCall(v value, body *RunWorkflow, vars []string) {
	p.object(v, "run.workflow", fields{
		{"namespace", true, func(v value) { body.Namespace = p.name(v, "the namespace") }},
		{"name", true, func(v value) { body.Name = p.name(v, "the name") }},
		{"version", true, func(v value) {
			if v.node.Kind == tree.String && v.node.Text == latest {
				return
			}
			body.Version = p.semver(v, "the version")
		}},
		{"input", false, func(v value) {
			if p.is(v, tree.Object, "run.workflow.input") {
				body.Input = p.template(v, vars)
			}
		}},
	})
}
