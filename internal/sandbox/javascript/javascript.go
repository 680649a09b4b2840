// Package javascript executes JavaScript in a WebAssembly sandbox: QuickJS-ng, compiled to WebAssembly, in wazero. Both
// are linked into the program, so nothing needs to be installed.
//
//	engine, err := javascript.New(ctx, javascript.Options{})
//	code, err := engine.Run(ctx, program)
//	engine.Close(ctx)
//
// A program has its arguments, its environment, its standard input and two output streams. It has no file system, no
// network, no processes and no access to the environment or the memory of this process: the sandbox imports no function
// that would give them. Each program has an instance of its own, which is discarded at its end.
//
// Time, memory and output of a program are bounded. A program over its time or output ends with an error of Run. One
// that is out of memory gets an exception, as JavaScript has it. Every loop and every function of
// the sandbox, those that are native to JavaScript too, pays from a counter; when it is used up, the sandbox asks
// whether the program must end.
package javascript

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/signalbox-dev/signalbox/internal/sandbox/output"
)

// quickjs is the file quickjs.wasm of the npm package quickjs-wasi. scripts/quickjs.sh fetches it.
//
//go:embed quickjs.wasm
var quickjs []byte

// bootstrap is a function that gives the global object what programs use of Node.js. Its argument is the input.
//
//go:embed bootstrap.js
var bootstrap string

const (
	// pageBytes is the size of a page of WebAssembly.
	pageBytes = 64 << 10
	// overheadPages are the pages of an instance beside the heap of its program.
	overheadPages = 64
	// stackBytes bounds the stack of JavaScript. The stack of the instance has 1 MiB.
	stackBytes = 512 << 10
)

// Flags of qjs_eval.
const (
	evalModule = 1 << 0
	evalAsync  = 1 << 7
)

// States of a promise.
const (
	promisePending  = 0
	promiseRejected = 2
)

// Program is a program to execute.
type Program struct {
	Code string
	// Arguments are process.argv from its third entry on.
	Arguments []string
	// Globals are variables of the global object, each a JSON value.
	Globals map[string]json.RawMessage
	// Environment is process.env.
	Environment map[string]string
	Stdin       string
	// Output is what the program prints. The context of Run ends where it is full.
	Output *output.Streams
	// Time bounds the time by the clock, which is processor time as long as processors are free.
	Time time.Duration
	// Memory is a further bound of the heap, in bytes. 0: only that of the engine.
	Memory int64
}

// ErrTime is the error of a program that was ended at its time limit.
var ErrTime = errors.New("the program was ended at its time limit")

// Options configure an engine.
type Options struct {
	// Memory bounds the heap of one program, in bytes.
	Memory int64
}

// Engine executes programs. It is safe for concurrent use.
type Engine struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	memory   int64

	running sync.RWMutex    // is held for reading while a program runs
	life    context.Context //nolint:containedctx // the lifetime of all programs
	end     context.CancelCauseFunc
}

// ErrClosed ends the programs that run when their engine is closed.
var ErrClosed = errors.New("the sandbox was closed")

// New compiles the sandbox, which takes up to a second of a processor.
func New(ctx context.Context, o Options) (*Engine, error) {
	module, err := meter(quickjs, interruptName)
	if err != nil {
		return nil, err
	}
	return compile(ctx, o, module, wazero.NewRuntimeConfig())
}

// compile returns an engine with a module.
func compile(ctx context.Context, o Options, module []byte, config wazero.RuntimeConfig) (*Engine, error) {
	pages := min(uint32(o.Memory/pageBytes)+overheadPages, 1<<16) //nolint:gosec // the configuration bounds it
	runtime := wazero.NewRuntimeWithConfig(ctx, config.WithMemoryLimitPages(pages))
	e := &Engine{runtime: runtime, memory: o.Memory}
	e.life, e.end = context.WithCancelCause(context.WithoutCancel(ctx))
	err := e.prepare(ctx, module)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing the sandbox of JavaScript: %w", err), runtime.Close(ctx))
	}
	return e, nil
}

func (e *Engine) prepare(ctx context.Context, module []byte) (err error) {
	// Its functions see no files, no arguments and no variables: an instance has none.
	if _, err = wasi_snapshot_preview1.Instantiate(ctx, e.runtime); err != nil {
		return err
	}
	_, err = e.runtime.NewHostModuleBuilder("env").
		NewFunctionBuilder().WithFunc(hostCall).Export("host_call").
		NewFunctionBuilder().WithFunc(hostInterrupt).Export(interruptName).
		NewFunctionBuilder().WithFunc(hostModuleNormalize).Export("host_module_normalize").
		NewFunctionBuilder().WithFunc(hostModuleLoad).Export("host_module_load").
		NewFunctionBuilder().WithFunc(func(_, _ uint32) uint32 { return 0 }).Export("host_get_timezone_offset").
		NewFunctionBuilder().WithFunc(hostPromiseRejection).Export("host_promise_rejection").
		Instantiate(ctx)
	if err != nil {
		return err
	}
	e.compiled, err = e.runtime.CompileModule(ctx, module)
	return err
}

// Close ends the programs that run with [ErrClosed], waits for them and releases the sandbox.
func (e *Engine) Close(ctx context.Context) error {
	e.end(ErrClosed)
	e.running.Lock()
	defer e.running.Unlock()
	return e.runtime.Close(ctx)
}

// Run executes a program and returns its exit code: 0, 1 after an exception that it did not catch, or the argument of
// process.exit. The error of a program that did not end by itself is [ErrTime], [ErrClosed], the cause of ctx, or
// a defect of the sandbox.
func (e *Engine) Run(ctx context.Context, p Program) (int, error) {
	e.running.RLock()
	defer e.running.RUnlock()
	if e.life.Err() != nil {
		return 0, ErrClosed
	}
	bounded, cancelTime := context.WithTimeoutCause(ctx, p.Time, ErrTime)
	defer cancelTime()
	bounded, cancel := context.WithCancelCause(bounded)
	defer cancel(nil)
	defer context.AfterFunc(e.life, func() { cancel(context.Cause(e.life)) })()
	x := &execution{printed: p.Output}
	bounded = context.WithValue(bounded, executionKey{}, x)
	err := e.execute(bounded, x, p)
	switch cause := context.Cause(bounded); {
	case x.exited:
		return x.code, nil
	case cause != nil:
		return 0, cause
	}
	return x.code, err
}

// execute runs a program in a fresh instance.
func (e *Engine) execute(ctx context.Context, x *execution, p Program) error {
	input, err := json.Marshal(map[string]any{
		"arguments": p.Arguments, "globals": p.Globals, "environment": p.Environment, "stdin": p.Stdin,
	})
	if err != nil {
		return fmt.Errorf("encoding the input of the program: %w", err)
	}
	module, err := e.runtime.InstantiateModule(ctx, e.compiled,
		wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").WithSysWalltime())
	if err != nil {
		return fmt.Errorf("making a sandbox: %w", err)
	}
	defer func() { _ = module.Close(context.WithoutCancel(ctx)) }() // it holds memory alone
	vm := &machine{ctx: ctx, module: module}
	if err := vm.open(min(e.memory, cmp.Or(p.Memory, e.memory))); err != nil {
		return err
	}
	setup := vm.eval("("+bootstrap+")("+quoted(string(input))+")", "signalbox", 0)
	if thrown := vm.thrown(setup); thrown != "" {
		return x.fail(thrown)
	}
	flags := uint32(evalAsync)
	if vm.isModule(p.Code) {
		flags = evalModule
	}
	return x.finish(vm, vm.eval(p.Code, "script.js", flags))
}

// finish executes what the program left to do, and sets its exit code. result is a promise for its end.
func (x *execution) finish(vm *machine, result uint32) error {
	if thrown := vm.thrown(result); thrown != "" {
		return x.fail(thrown)
	}
	for vm.err == nil && vm.call("qjs_is_job_pending") != 0 {
		if int32(vm.call("qjs_execute_pending_job")) < 0 { //nolint:gosec // a C int
			return x.fail(vm.exception())
		}
	}
	state := vm.call("qjs_promise_state", result)
	switch {
	case vm.err != nil:
		return vm.err
	case state == promiseRejected:
		return x.fail(vm.describe(vm.call("qjs_promise_result", result)))
	case state == promisePending:
		return x.fail("Error: the program awaits a promise that nothing settles")
	case x.rejections > 0:
		return x.fail("Uncaught (in promise) " + x.rejection)
	}
	return nil
}

// fail ends a program with an exception that it did not catch. That of a program which ends itself is no error.
func (x *execution) fail(thrown string) error {
	if !x.exited {
		_, _ = io.WriteString(x.printed.Stderr(), thrown+"\n") // which never fails
		x.code = 1
	}
	return nil
}

// quoted returns a text as a literal of JavaScript.
func quoted(text string) string {
	literal, err := json.Marshal(text)
	if err != nil {
		panic(fmt.Sprintf("encode a text: %v", err)) // every text can be encoded
	}
	return string(literal)
}
