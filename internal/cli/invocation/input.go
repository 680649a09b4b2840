package invocation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// ReadJSON resolves --flag: "-" is standard input, JSON text is itself, anything else is a file of JSON.
//
// JSON is passed on byte for byte, so numbers keep their digits. Errors are those of a command line that cannot be
// understood, and name the flag.
func ReadJSON(flag, text string, stdin io.Reader) (string, error) {
	if text != "-" && looksLikeJSON(text) {
		return check(flag, "--"+flag, []byte(text))
	}
	content, source, err := read(flag, text, stdin, "neither JSON nor a file that can be read")
	if err != nil {
		return "", err
	}
	return check(flag, source, content)
}

// ReadBytes resolves --flag where it need not be JSON: "-" is standard input, anything else a file.
func ReadBytes(flag, text string, stdin io.Reader) ([]byte, error) {
	content, _, err := read(flag, text, stdin, "no file that can be read")
	return content, err
}

// ReadFile reads a file that an argument names, or standard input for "-". what is named in errors.
func ReadFile(what, name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		content, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("read the %s from standard input: %w", what, err)
		}
		return content, nil
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "read the %s: %w", what, err)
	}
	return content, nil
}

// read returns the content and what it was read from.
func read(flag, text string, stdin io.Reader, otherwise string) (content []byte, source string, err error) {
	if text == "-" {
		content, err = ReadFile(flag, text, stdin)
		return content, "standard input", err
	}
	if content, err = os.ReadFile(text); err != nil {
		return nil, "", exit.Usagef("--%s: %q is %s: %w", flag, text, otherwise, cause(err))
	}
	return content, text, nil
}

// looksLikeJSON takes what cannot be a file's name people use, and every complete JSON value, as JSON.
func looksLikeJSON(text string) bool {
	return json.Valid([]byte(text)) || strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") ||
		strings.HasPrefix(text, `"`)
}

func check(flag, source string, content []byte) (string, error) {
	content = bytes.TrimSpace(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf")))
	if len(content) == 0 {
		return "", exit.Usagef("the %s in %s is empty; write a JSON value, for example {}", flag, source)
	}
	var value json.RawMessage
	err := json.Unmarshal(content, &value)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		line, column := position(content, syntax.Offset)
		return "", exit.Usagef("the %s in %s is not JSON: line %d, column %d: %w", flag, source, line, column, err)
	}
	if err != nil {
		return "", exit.Usagef("the %s in %s is not JSON: %w", flag, source, err)
	}
	return string(content), nil
}

// position turns the decoder's offset, which counts the bytes read, into line and column.
func position(content []byte, offset int64) (line, column int) {
	before := content[:max(0, min(int(offset)-1, len(content)))]
	line = bytes.Count(before, []byte("\n")) + 1
	return line, len(before) - bytes.LastIndexByte(before, '\n')
}

// cause drops the file's name from an error of package os; the caller has quoted it.
func cause(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}
