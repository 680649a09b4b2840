package invocation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// formatName prints the names of what was found, for loops of a shell.
const formatName = "name"

// identifiers are the fields that identify an object of the API, in order of preference.
func identifiers() []string { return []string{"id", "name", "serverId", "project", "code"} }

// filter writes what a function makes of each JSON value that is written to it. Commands write whole values at once.
type filter struct {
	w     io.Writer
	apply func(value any) ([]string, error)
}

// Write implements [io.Writer].
func (f filter) Write(p []byte) (int, error) {
	decoder := json.NewDecoder(bytes.NewReader(p))
	decoder.UseNumber() // which keeps the digits
	for {
		var value any
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return len(p), nil
		}
		if err != nil {
			return 0, exit.Usagef("--jq and -o name: this command does not print JSON")
		}
		lines, err := f.apply(value)
		if err != nil {
			return 0, err
		}
		for _, line := range lines {
			if _, err := io.WriteString(f.w, line+"\n"); err != nil {
				return 0, err
			}
		}
	}
}

// compileJQ compiles the expression of --jq.
func compileJQ(source string) (func(value any) ([]string, error), error) {
	query, err := gojq.Parse(source)
	if err != nil {
		return nil, exit.Usagef("--jq: %q is no jq expression: %w", source, err)
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, exit.Usagef("--jq: %q cannot be compiled: %w", source, err)
	}
	return func(value any) ([]string, error) {
		var lines []string
		for results := code.Run(value); ; {
			result, more := results.Next()
			if !more {
				return lines, nil
			}
			if err, failed := result.(error); failed {
				return nil, exit.Errorf(exit.Failed, "--jq: %w", err)
			}
			line, err := rawText(result)
			if err != nil {
				return nil, err
			}
			lines = append(lines, line)
		}
	}, nil
}

// rawText returns a text as it is, and every other value as JSON.
func rawText(value any) (string, error) {
	if text, is := value.(string); is {
		return text, nil
	}
	text, err := gojq.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("print the result of --jq: %w", err)
	}
	return string(text), nil
}

// names returns the identifiers of an object, or of those in an array.
func names(value any) ([]string, error) {
	list, is := value.([]any)
	if !is {
		list = []any{value}
	}
	var lines []string
	for _, item := range list {
		name := nameOf(item)
		if object, _ := item.(map[string]any); name == "" && is {
			name, _ = object["version"].(string) // of a list of versions of one workflow
		}
		if name == "" {
			return nil, exit.Usagef("-o name: the output of this command has no names; use table, wide, json or yaml")
		}
		lines = append(lines, name)
	}
	return lines, nil
}

// nameOf returns the identifier of an object, or of the only object in it that has one; "" without one.
func nameOf(value any) string {
	object, _ := value.(map[string]any)
	for _, field := range identifiers() {
		switch name := object[field].(type) {
		case string:
			if name != "" {
				return name
			}
		case json.Number: // an entry of the audit log is numbered
			return name.String()
		}
	}
	var found []string
	for _, inner := range object {
		if nested, is := inner.(map[string]any); is && nameOf(nested) != "" {
			found = append(found, nameOf(nested))
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return ""
}

// filterOutput makes the output what --jq or -o name asks for.
func (s *Invocation) filterOutput(chosen bool) error {
	switch {
	case s.jq != "":
		if chosen && s.format != "json" {
			return exit.Usagef("--jq: it reads JSON; leave out -o %s", s.format)
		}
		apply, err := compileJQ(s.jq)
		if err != nil {
			return err
		}
		s.format, s.Out = "json", filter{s.Out, apply}
	case s.format == formatName:
		s.format, s.Out = "json", filter{s.Out, names}
	}
	return nil
}

// formatList lists the formats for messages.
func formatList() string { return strings.Join(formats(), ", ") }
