package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/config/schema"
)

// Problem is one mistake in the configuration.
type Problem struct {
	Path    string // the key, "store.dsn"; empty where the whole file is the subject
	Source  string // where the value came from: "signalbox.yaml:12", "--listen", "SIGNALBOX_LISTEN", "default"
	Message string // what is wrong and what to do
	Heals   bool   // it may disappear without a restart, so a server starts nevertheless
}

// String writes the problem on one line.
func (p Problem) String() string {
	switch {
	case p.Path == "":
		return fmt.Sprintf("%s: %s", p.Source, p.Message)
	case p.Source == "":
		return fmt.Sprintf("%s: %s", p.Path, p.Message)
	default:
		return fmt.Sprintf("%s (%s): %s", p.Path, p.Source, p.Message)
	}
}

// Problems are all problems found, in the order of the file, then of the keys. It is the error of Load
// and Validate.
type Problems []Problem

// Error writes one problem per line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// found collects problems while a concern is checked.
type found []Problem

func (f *found) add(path, format string, args ...any) {
	*f = append(*f, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// under prefixes the problems of one concern with its section.
func (ps Problems) under(section string) Problems {
	out := make(Problems, len(ps))
	for i, p := range ps {
		p.Path = schema.Join(section, p.Path)
		out[i] = p
	}
	return out
}

// fatal reports whether any problem prevents a server from starting.
func (ps Problems) fatal() bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return !p.Heals })
}

// err returns nil, not an empty Problems, where nothing is wrong.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}
