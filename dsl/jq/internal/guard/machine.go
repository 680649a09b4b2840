package guard

import (
	"sync"

	"github.com/itchyny/gojq"
)

// started is the cost of starting a gojq machine for one call, which allocates its stacks.
const started = 16

// machine evaluates gojq functions for guards that need some of them. It compiles each once.
type machine struct {
	mu    sync.Mutex
	codes map[string]*gojq.Code
}

// call evaluates an expression on a value. The expression may use $a for its argument.
func (m *machine) call(expression string, v any, args ...any) (any, error) {
	code, err := m.code(expression)
	if err != nil {
		return nil, err
	}
	var a any
	if len(args) > 0 {
		a = args[0]
	}
	out, _ := code.Run(v, a).Next()
	if err, failed := out.(error); failed {
		return nil, err
	}
	return out, nil
}

func (m *machine) code(expression string) (*gojq.Code, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if code, ok := m.codes[expression]; ok {
		return code, nil
	}
	query, err := gojq.Parse(expression)
	if err != nil {
		return nil, err
	}
	code, err := gojq.Compile(query, gojq.WithVariables([]string{"$a"}))
	if err != nil {
		return nil, err
	}
	m.codes[expression] = code
	return code, nil
}

// refuse runs an expression that refuses a value of the wrong type, so that the message is jq's.
func (m *machine) refuse(expression string, v any, args []any, f *Fuel) (any, error) {
	if _, err := pay(v, args, f); err != nil {
		return nil, err
	}
	return m.call(expression, v, args...)
}
