package javascript_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/sandbox/javascript"
	"github.com/signalbox-dev/signalbox/internal/sandbox/output"
)

const memory = 32 << 20

func newEngine(t *testing.T) *javascript.Engine {
	t.Helper()
	e, err := javascript.New(t.Context(), javascript.Options{Memory: memory})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(context.WithoutCancel(t.Context()))) })
	return e
}

// program returns a program with generous limits.
func program(code string) javascript.Program {
	return javascript.Program{Code: code, Time: time.Minute}
}

// result is the exit code of a program and what it printed.
type result struct {
	Code           int
	Stdout, Stderr string
}

// run executes a program.
func run(ctx context.Context, e *javascript.Engine, p javascript.Program) (result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.Output = output.New(64<<10, cancel)
	code, err := e.Run(ctx, p)
	stdout, stderr := p.Output.Text()
	return result{code, stdout, stderr}, err
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	for name, c := range map[string]struct {
		code           string
		stdout, stderr string // stderr: a part
		exit           int
	}{
		"console": {
			`console.log("a", 1, true, null, undefined, [1, {b: 2}], 10n); console.error("e")`,
			"a 1 true null undefined [1,{\"b\":2}] 10n\n", "e\n", 0,
		},
		"arguments":   {`const [a, b] = process.argv.slice(2); console.log(a + b)`, "onetwo\n", "", 0},
		"globals":     {`console.log(order.lines.length, rate)`, "2 0.5\n", "", 0},
		"environment": {`console.log(process.env.MODE, Object.keys(process.env).length)`, "fast 1\n", "", 0},
		"stdin":       {`console.log(process.stdin.read())`, "given\n", "", 0},
		"import": {
			"import { readFileSync } from 'node:fs'\nconsole.log(readFileSync(process.stdin.fd, 'utf8'))",
			"given\n", "", 0,
		},
		"require":        {`const fs = require('fs'); console.log(fs.readFileSync('/dev/stdin'))`, "given\n", "", 0},
		"import default": {"import process from 'node:process'\nprocess.stdout.write(process.env.MODE)", "fast", "", 0},
		"await":          {`const x = await Promise.resolve(5); console.log(x)`, "5\n", "", 0},
		"strict":         {`undeclared = 5`, "", "ReferenceError: undeclared is not defined", 1},
		"modern": {
			`console.log(Object.groupBy([1, 2, 3], (n) => n % 2 ? 'odd' : 'even').odd, [3, 1].toSorted())`,
			"[1,3] [1,3]\n", "", 0,
		},
		"unicode":       {`console.log("ä😀" + "\ud800".length)`, "ä😀1\n", "", 0},
		"time zone":     {`console.log(new Date(0).getTimezoneOffset())`, "0\n", "", 0},
		"exception":     {`throw new TypeError("boom")`, "", "TypeError: boom\n    at <anonymous> (script.js:1:", 1},
		"thrown text":   {`throw "text"`, "", "text\n", 1},
		"syntax":        {`let let`, "", "SyntaxError", 1},
		"rejection":     {`Promise.reject(new Error("late"))`, "", "Uncaught (in promise) Error: late", 1},
		"handled later": {`const p = Promise.reject(1); await null; p.catch(() => console.log("ok"))`, "ok\n", "", 0},
		"pending":       {`await new Promise(() => {})`, "", "awaits a promise that nothing settles", 1},
		"exit":          {`console.log("before"); process.exit(3); console.log("after")`, "before\n", "", 3},
		"memory": {
			`const a = []; for (;;) a.push(new Array(10000).fill(1))`,
			"", "InternalError: out of memory", 1,
		},
		"huge buffer":    {`new ArrayBuffer(2e9)`, "", "out of memory", 1},
		"recursion":      {`function f() { f() } f()`, "", "RangeError: Maximum call stack size exceeded", 1},
		"module":         {`import net from 'node:net'`, "", `the module "node:net" is not available`, 1},
		"file":           {`require('fs').readFileSync('/etc/passwd')`, "", "the file /etc/passwd is not available", 1},
		"dynamic import": {`await import('/etc/passwd')`, "", `the module "/etc/passwd" is not available`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := program(c.code)
			p.Arguments, p.Stdin = []string{"one", "two"}, "given"
			p.Environment = map[string]string{"MODE": "fast"}
			p.Globals = map[string]json.RawMessage{"order": []byte(`{"lines":[1,2]}`), "rate": []byte(`0.5`)}
			r, err := run(t.Context(), e, p)
			require.NoError(t, err)
			require.Equal(t, c.stdout, r.Stdout, r.Stderr)
			require.Contains(t, r.Stderr, c.stderr)
			require.Equal(t, c.exit, r.Code, r.Stderr)
		})
	}
}

// A program sees nothing of this process: the global object has what the language has, and what the bootstrap adds.
func TestGlobalObjectHasNoInputOutput(t *testing.T) {
	t.Setenv("SIGNALBOX_TEST_SECRET", "hidden")
	e := newEngine(t)
	r, err := run(t.Context(), e, program(`
		const found = []
		for (const name of ['std', 'os', 'write', 'fetch', 'WebAssembly', 'Deno', 'Bun', 'XMLHttpRequest', 'Worker',
			'module', 'load'])
			if (name in globalThis) found.push(name)
		console.log(JSON.stringify(found), JSON.stringify(process.env), process.argv.length)`))
	require.NoError(t, err)
	require.Equal(t, "[] {} 2\n", r.Stdout, r.Stderr)
}

// Also functions that never return to the interpreter of JavaScript end at the limit.
func TestProgramsEndAtTheirTime(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	for name, code := range map[string]string{
		"loop":         `for (;;);`,
		"caught":       `for (;;) { try { for (;;); } catch {} finally { for (;;); } }`,
		"jobs":         `const f = () => Promise.resolve().then(f); f()`,
		"expression":   `/^(a+)+$/.test("a".repeat(60) + "b")`,
		"native loop":  `Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)`,
		"native depth": `let a = []; for (let i = 0; i < 60; i++) a = [a, a]; a.flat(Infinity)`,
		"memory":       `const b = new Uint8Array(24 << 20); for (;;) b.fill(1)`,
		"copies":       `const b = new Uint8Array(12 << 20); for (;;) b.copyWithin(1, 0)`,
		"sort":         `[1, 2].sort.call({length: 1e7}, () => 0); for (;;) [..."x".repeat(1e5)].sort()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := program(code)
			p.Time = 300 * time.Millisecond
			_, err := run(t.Context(), e, p)
			require.ErrorIs(t, err, javascript.ErrTime)
		})
	}
}

func TestProgramsEndAtTheirOutput(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	for _, code := range []string{
		`for (;;) console.log("x")`, `for (;;) console.error("x")`, `console.log("x".repeat(1 << 20))`,
		`for (;;) { try { console.log("x") } catch {} }`,
	} {
		p := program(code)
		p.Time = 10 * time.Minute // a busy machine needs long for the output
		r, err := run(t.Context(), e, p)
		require.ErrorIs(t, err, output.ErrFull, code)
		require.Equal(t, 64<<10, max(len(r.Stdout), len(r.Stderr)), code)
	}
}

func TestCanceledProgramEnds(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("canceled by the test")
	p := program(`console.log("started"); for (;;);`)
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	_, err := run(ctx, e, p)
	require.ErrorIs(t, err, why)
}

// The memory of programs is released: a hundred that each use most of theirs do not add up.
func TestMemoryIsReleased(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	for range 20 {
		r, err := run(t.Context(), e, program(`const b = new Uint8Array(20 << 20).fill(1); console.log(b.length)`))
		require.NoError(t, err)
		require.Equal(t, 0, r.Code, r.Stderr)
	}
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	require.Less(t, stats.HeapAlloc, uint64(10*memory))
}

// Programs do not see each other.
func TestProgramsAreSeparate(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	_, err := run(t.Context(), e, program(`globalThis.left = 1; Array.prototype.left = 1`))
	require.NoError(t, err)
	r, err := run(t.Context(), e, program(`console.log(typeof left, typeof [].left)`))
	require.NoError(t, err)
	require.Equal(t, "undefined undefined", strings.TrimSpace(r.Stdout))
}

// An engine that is closed ends the programs that run.
func TestCloseEndsPrograms(t *testing.T) {
	t.Parallel()
	e, err := javascript.New(t.Context(), javascript.Options{Memory: memory})
	require.NoError(t, err)
	ended := make(chan error)
	started := make(chan struct{})
	go func() {
		close(started)
		_, err := e.Run(t.Context(), program(`for (;;);`))
		ended <- err
	}()
	<-started
	closed := make(chan error)
	go func() { closed <- e.Close(t.Context()) }()
	require.ErrorIs(t, <-ended, javascript.ErrClosed)
	require.NoError(t, <-closed)
}
