package javascript

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/tetratelabs/wazero/api"

	"github.com/signalbox-dev/signalbox/internal/sandbox/output"
)

// writeFunction is the name of the host's one function, write(stream, text). The bootstrap removes it from the global
// object. A stream of 0 ends the program with the exit code that text is.
const writeFunction = "write"

// Numbers of the streams in calls of writeFunction.
const (
	stdout = 1
	stderr = 2
)

// execution is one program that runs.
type execution struct {
	printed *output.Streams
	code    int
	exited  bool // by process.exit
	// rejections counts the rejected promises that nothing handles, and rejection describes the last one.
	rejections int
	rejection  string
}

type executionKey struct{}

// executionOf returns the program that a function of the host is called for.
func executionOf(ctx context.Context) *execution {
	x, _ := ctx.Value(executionKey{}).(*execution)
	return x
}

// hostCall is called for the functions of the host, of which there is one.
func hostCall(ctx context.Context, module api.Module, _, _, _, argc, argv uint32) uint32 {
	const arguments = 2
	m, x := &machine{ctx: ctx, module: module}, executionOf(ctx)
	stream, _ := module.Memory().ReadUint32Le(argv)
	text, found := module.Memory().ReadUint32Le(argv + 4) //nolint:mnd // the size of a pointer
	if argc < arguments || !found {
		return 0
	}
	number, err := strconv.Atoi(m.string(stream))
	if err != nil || m.err != nil {
		return 0
	}
	written := m.string(text)
	switch number {
	case stdout:
		_, _ = io.WriteString(x.printed.Stdout(), written) // which never fails
	case stderr:
		_, _ = io.WriteString(x.printed.Stderr(), written)
	default:
		x.code, _ = strconv.Atoi(written)
		x.code &= 0xff // as a process
		x.exited = true
	}
	return m.call("qjs_get_undefined")
}

// interruptName is the name of hostInterrupt in the sandbox.
const interruptName = "host_interrupt"

// hostInterrupt ends an execution whose context has ended, by a panic, which wazero returns as the error of the call.
// It is called each time that the fuel is used up, and by the interpreter of JavaScript, to which it reports whether
// the program has ended itself.
func hostInterrupt(ctx context.Context) uint32 {
	if ctx.Err() != nil {
		panic(context.Cause(ctx))
	}
	if executionOf(ctx).exited {
		return 1
	}
	return 0
}

// hostPromiseRejection is called when a promise without a handler is rejected, and when it gets one afterwards.
func hostPromiseRejection(ctx context.Context, module api.Module, _, reason, handled uint32) {
	m, x := &machine{ctx: ctx, module: module}, executionOf(ctx)
	if handled != 0 {
		x.rejections--
		return
	}
	x.rejections++
	x.rejection = m.describe(reason)
}

// modules returns the names of the modules that programs may import, each with its exports. The bootstrap has them.
func modules() []string { return []string{"fs", "process"} }

// moduleName returns the name of a module that a program may import.
func moduleName(specifier string) (string, bool) {
	name := specifier
	if len(name) > len("node:") && name[:len("node:")] == "node:" {
		name = name[len("node:"):]
	}
	return name, slices.Contains(modules(), name)
}

// hostModuleNormalize returns the address of the name of a module; 0 with a pending exception where there is none.
func hostModuleNormalize(ctx context.Context, module api.Module, _, specifier uint32) uint32 {
	m := &machine{ctx: ctx, module: module}
	asked := m.cString(specifier)
	name, known := moduleName(asked)
	if !known {
		m.throw(fmt.Sprintf("the module %q is not available: JavaScript has no files and no network here; node:fs reads "+
			"the standard input, node:process has arguments and environment", asked))
		return 0
	}
	return m.text(name)
}

// hostModuleLoad returns the address of the source of a module, and writes its length.
func hostModuleLoad(ctx context.Context, module api.Module, name, length uint32) uint32 {
	m := &machine{ctx: ctx, module: module}
	source := "const m = globalThis.require(" + quoted(m.cString(name)) + ");\nexport default m;\n"
	switch m.cString(name) {
	case "fs":
		source += "export const readFileSync = m.readFileSync, writeSync = m.writeSync;\n"
	case "process":
		source += "export const argv = m.argv, env = m.env, stdin = m.stdin, stdout = m.stdout, stderr = m.stderr, " +
			"exit = m.exit;\n"
	}
	module.Memory().WriteUint32Le(length, uint32(len(source))) //nolint:gosec // it is short
	return m.text(source)
}

// cString returns the text at an address, up to its zero byte.
func (m *machine) cString(at uint32) string {
	const most = 1 << 10
	for n := range uint32(most) {
		b, ok := m.module.Memory().ReadByte(at + n)
		if !ok || b != 0 {
			continue
		}
		data, _ := m.module.Memory().Read(at, n)
		return string(data)
	}
	return ""
}
