package runcmd

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

// readInput resolves --input: "-" is standard input, JSON text is itself, anything else is a file of JSON. The JSON
// is passed on byte for byte, so numbers keep their digits.
func readInput(text string, stdin io.Reader) (string, error) {
	switch {
	case text == "-":
		content, err := io.ReadAll(stdin)
		if err != nil {
			return "", fmt.Errorf("read the input from standard input: %w", err)
		}
		return checkInput("standard input", content)
	case looksLikeJSON(text):
		return checkInput("--input", []byte(text))
	}
	content, err := os.ReadFile(text)
	if err != nil {
		return "", exit.Usagef("--input: %q is neither JSON nor a file that can be read: %w", text, cause(err))
	}
	return checkInput(text, content)
}

// looksLikeJSON takes what cannot be a file's name people use, and every complete JSON value, as JSON.
func looksLikeJSON(text string) bool {
	return json.Valid([]byte(text)) || strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") || strings.HasPrefix(text, `"`)
}

func checkInput(source string, content []byte) (string, error) {
	content = bytes.TrimSpace(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf")))
	if len(content) == 0 {
		return "", exit.Usagef("the input in %s is empty; write a JSON value, for example {}", source)
	}
	var value json.RawMessage
	err := json.Unmarshal(content, &value)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		line, column := position(content, syntax.Offset)
		return "", exit.Usagef("the input in %s is not JSON: line %d, column %d: %w", source, line, column, err)
	}
	if err != nil {
		return "", exit.Usagef("the input in %s is not JSON: %w", source, err)
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
