package secret

import (
	"context"
	"fmt"
	"strings"
)

// environment reads secrets from variables: PREFIX + PROJECT + "__" + NAME, in capitals, with _ for hyphens and dots.
type environment struct {
	prefix string
	lookup func(string) (string, bool)
}

func (e environment) String() string { return "secrets.env_prefix" }

func (e environment) Resolve(_ context.Context, project, name string) (Value, error) {
	// The first __ ends the project name. A project whose variable name would contain one has no variables: they could be
	// another project's.
	if !plainName(name) || !plainName(project) || strings.Contains(project, "--") {
		return nil, fmt.Errorf("a variable of the secret %q: %w", name, ErrMissing)
	}
	variable := e.prefix + capitals(project) + "__" + capitals(name)
	value, ok := e.lookup(variable)
	if !ok {
		return nil, fmt.Errorf("the variable %s of the secret %q: %w", variable, name, ErrMissing)
	}
	return Value(value), nil
}

func capitals(name string) string {
	return strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToUpper(name))
}
