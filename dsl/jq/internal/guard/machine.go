package guard

import (
	"sync"

	"github.com/itchyny/gojq"
)

// started is the price of starting the machine for one call, which takes memory for its stacks.
const started = 16

// machine computes functions of the jq machine itself, for guards that need some of them. It compiles each once.
type machine struct {
	mu    sync.Mutex
	codes map[string]*gojq.Code
}

// call computes an expression on a value. The expression may use $a for its argument.
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

// refuse lets the machine refuse a value of the wrong type, whose message is jq's.
func (m *machine) refuse(expression string, v any, args []any, f *Fuel) (any, error) {
	if _, err := pay(v, args, f); err != nil {
		return nil, err
	}
	return m.call(expression, v, args...)
}
