package javascript

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// machine calls the functions of one instance. After the first error it calls none.
type machine struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one program
	module api.Module
	err    error
}

// open makes the runtime of JavaScript and sets its limits.
func (m *machine) open(memory int64) error {
	if m.call("qjs_init") != 0 && m.err == nil {
		return errors.New("making a sandbox: the runtime of JavaScript did not start")
	}
	m.call("qjs_set_memory_limit", uint32(memory)) //nolint:gosec // the configuration bounds it
	m.call("qjs_set_max_stack_size", stackBytes)
	m.call("qjs_set_interrupt_handler", 1)
	m.call("qjs_set_module_loader", 1)
	m.call("qjs_set_promise_rejection_handler", 1)
	name := m.text(writeFunction)
	function := m.call("qjs_new_host_function", name, uint32(len(writeFunction)), 0)
	m.call("qjs_set_prop_string", m.call("qjs_get_global"), name, function)
	return m.err
}

// call calls a function of the instance; it returns 0 for one without a result.
func (m *machine) call(name string, arguments ...uint32) uint32 {
	if m.err != nil {
		return 0
	}
	stack := make([]uint64, max(1, len(arguments)))
	for i, a := range arguments {
		stack[i] = uint64(a)
	}
	if err := m.module.ExportedFunction(name).CallWithStack(m.ctx, stack); err != nil {
		m.err = fmt.Errorf("executing JavaScript: %w", err)
		return 0
	}
	return uint32(stack[0]) //nolint:gosec // all results are 32 bits wide
}

// text copies a text into the instance, with a zero byte at its end, and returns its address; 0 if there is no memory.
func (m *machine) text(s string) uint32 {
	at := m.call("wasm_malloc", uint32(len(s)+1)) //nolint:gosec // the size of a request is bounded
	if at == 0 || !m.module.Memory().Write(at, append([]byte(s), 0)) {
		m.fail("the program is too large for its memory")
		return 0
	}
	return at
}

func (m *machine) fail(text string) {
	if m.err == nil {
		m.err = errors.New("executing JavaScript: " + text)
	}
}

func (m *machine) eval(code, name string, flags uint32) uint32 {
	at := m.text(code)
	return m.call("qjs_eval", at, uint32(len(code)), m.text(name), flags) //nolint:gosec // as for text
}

// isModule reports whether code is a module of ECMAScript: it has import or export declarations.
func (m *machine) isModule(code string) bool {
	at := m.text(code)
	return m.call("JS_DetectModule", at, uint32(len(code))) != 0 //nolint:gosec // as for text
}

// thrown returns the description of the exception with which an evaluation ended; empty if it ended without one.
func (m *machine) thrown(result uint32) string {
	if m.err != nil || m.call("qjs_is_exception", result) == 0 {
		return ""
	}
	return m.exception()
}

// exception returns the description of the pending exception.
func (m *machine) exception() string { return m.describe(m.call("qjs_get_exception")) }

// describe returns a thrown value as text: of an error the message and the stack.
func (m *machine) describe(value uint32) string {
	text := m.string(value)
	if stack := m.call("qjs_get_prop_string", value, m.text("stack")); m.call("qjs_is_string", stack) != 0 {
		text += "\n" + m.string(stack)
	}
	return strings.TrimRight(text, "\n")
}

// string converts a value to text.
func (m *machine) string(value uint32) string {
	size := m.call("wasm_malloc", 4) //nolint:mnd // the size of a size_t
	at := m.call("qjs_get_string_len", value, size)
	if m.err != nil || at == 0 {
		return ""
	}
	length, _ := m.module.Memory().ReadUint32Le(size)
	data, ok := m.module.Memory().Read(at, length)
	if !ok {
		return ""
	}
	text := strings.ToValidUTF8(string(data), "\uFFFD")
	m.call("qjs_free_cstring", at)
	m.call("wasm_free", size)
	return text
}

// throw makes an error the pending exception.
func (m *machine) throw(message string) {
	value := m.call("qjs_new_error")
	m.call("qjs_set_prop_string", value, m.text("message"), m.call("qjs_new_string", m.text(message),
		uint32(len(message)))) //nolint:gosec // as for text
	m.call("qjs_throw", value)
}
