package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/config/schema"
)

// Violation is one mistake in the configuration.
type Violation struct {
	// Path is the key, "store.dsn"; empty where the whole file is the subject.
	Path string `json:"path,omitempty"`
	// Source is where the value came from: "signalbox.yaml:12", "--listen", "SIGNALBOX_LISTEN", "default".
	Source string `json:"source,omitempty"`
	// Message is what is wrong and what to do.
	Message string `json:"message"`
	// Heals: it may disappear without a restart, so a server starts nevertheless.
	Heals bool `json:"heals,omitempty"`
}

// String writes the violation on one line.
func (p Violation) String() string {
	switch {
	case p.Path == "":
		return fmt.Sprintf("%s: %s", p.Source, p.Message)
	case p.Source == "":
		return fmt.Sprintf("%s: %s", p.Path, p.Message)
	default:
		return fmt.Sprintf("%s (%s): %s", p.Path, p.Source, p.Message)
	}
}

// Violations are all violations found, in the order of the file, then of the keys. It is the error of Load
// and Validate.
type Violations []Violation

// Error writes one violation per line.
func (ps Violations) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// found collects violations while a concern is checked.
type found []Violation

func (f *found) add(path, format string, args ...any) {
	*f = append(*f, Violation{Path: path, Message: fmt.Sprintf(format, args...)})
}

// under prefixes the violations of one concern with its section.
func (ps Violations) under(section string) Violations {
	out := make(Violations, len(ps))
	for i, p := range ps {
		p.Path = schema.Join(section, p.Path)
		out[i] = p
	}
	return out
}

// fatal reports whether any violation prevents a server from starting.
func (ps Violations) fatal() bool {
	return slices.ContainsFunc(ps, func(p Violation) bool { return !p.Heals })
}

// err returns nil, not an empty Violations, where nothing is wrong.
func (ps Violations) err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}
