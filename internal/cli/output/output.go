// Package output prints what commands found: tables for people, JSON and YAML for programs.
//
// JSON and YAML have the shape of the API's own JSON: lower-camel names, statuses as words, times in RFC 3339,
// inputs and outputs digit for digit. Lists are arrays. Tables may change from version to version; the other
// two only grow. Package terminal keeps text from a workflow from steering the terminal, in every format.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// Format is what a command prints.
type Format string

// The formats.
const (
	Table Format = "table"
	Wide  Format = "wide"
	JSON  Format = "json"
	YAML  Format = "yaml"
)

// Formats lists them all.
func Formats() []string { return []string{string(Table), string(Wide), string(JSON), string(YAML)} }

// Known reports whether f is a format.
func (f Format) Known() bool { return slices.Contains(Formats(), string(f)) }

// Structured reports whether f is JSON or YAML.
func (f Format) Structured() bool { return f == JSON || f == YAML }

// Message prints one message of the API.
func Message(w io.Writer, format Format, message proto.Message) error {
	text, err := jsoncodec.Append(nil, message)
	if err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return raw(w, format, text)
}

// List prints messages of the API as one array.
func List[M proto.Message](w io.Writer, format Format, messages []M) error {
	text := []byte{'['}
	for i, message := range messages {
		if i > 0 {
			text = append(text, ',')
		}
		var err error
		if text, err = jsoncodec.Append(text, message); err != nil {
			return fmt.Errorf("print the answer: %w", err)
		}
	}
	return raw(w, format, append(text, ']'))
}

// Line prints one message of the API as one line of JSON.
func Line(w io.Writer, message proto.Message) error {
	text, err := jsoncodec.Append(nil, message)
	if err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	_, err = w.Write(append(terminal.JSON(text), '\n'))
	return err
}

// Value prints any value that encoding/json can write.
func Value(w io.Writer, format Format, value any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return raw(w, format, text.Bytes())
}

func raw(w io.Writer, format Format, text []byte) error {
	if format == YAML {
		return writeYAML(w, text)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, bytes.TrimSpace(text), "", "  "); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	pretty.WriteByte('\n')
	_, err := w.Write(terminal.JSON(pretty.Bytes()))
	return err
}
