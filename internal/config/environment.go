package config

import "strings"

// Environment holds the process's variables as a value, so that two platforms in one process, and tests, can
// have different ones.
type Environment map[string]string

// NewEnvironment converts the result of os.Environ.
func NewEnvironment(environ []string) Environment {
	env := Environment{}
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			env[name] = value
		}
	}
	return env
}

// LookupEnv is os.LookupEnv on this environment.
func (e Environment) LookupEnv(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// Environ is os.Environ on this environment, in no particular order.
func (e Environment) Environ() []string {
	pairs := make([]string, 0, len(e))
	for name, value := range e {
		pairs = append(pairs, name+"="+value)
	}
	return pairs
}
