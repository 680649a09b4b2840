package tree

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	goccy "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
)

// diagnose finds the position of a syntax error. The main parser (yaml.v3) reports a line, which is that of the
// construct rather than of the error. The second parser (goccy/go-yaml) reports line and column, but may take long on
// hostile input, so it receives only a short text: a short document, or the part up to the line in question.
func diagnose(source []byte, cause error) Violation {
	f := Violation{Kind: Syntax, Pos: Pos{1, 1}, Message: strings.TrimPrefix(cause.Error(), "yaml: ")}
	if strings.Contains(f.Message, "exceeded max depth") {
		f.Kind, f.Message = Limit, "nested deeper than the limit"
		return f
	}
	if m := regexp.MustCompile(`^line (\d+): (.*)$`).FindStringSubmatch(f.Message); m != nil {
		line, _ := strconv.Atoi(m[1])
		f.Pos, f.Message = Pos{max(line, 1), 1}, m[2]
	}
	if name, ok := strings.CutPrefix(f.Message, "unknown anchor '"); ok {
		name, _, _ = strings.Cut(name, "'")
		f.Pos, f.Message = position(source, bytes.Index(source, []byte("*"+name))),
			fmt.Sprintf("the anchor %q is not defined", name)
		return f
	}
	for _, text := range [][]byte{source, upToLine(source, f.Pos.Line+2)} {
		if pos, message, ok := locate(text); ok {
			f.Pos, f.Message = pos, message
			break
		}
	}
	f.Message = "not valid YAML: " + f.Message
	if strings.Contains(f.Message, `'\t'`) || strings.Contains(f.Message, "cannot start any token") {
		f.Suggestion = "indent with spaces, not tabs, and quote values that start with %, @ or `"
	} else if line := lineAt(source, f.Pos.Line); regexp.MustCompile(`:\s+\$\{`).MatchString(line) {
		f.Suggestion = "put quotes around an expression that contains { or \": \": '${ {a: 1} }'"
	} else if strings.Contains(f.Message, "mapping value") {
		f.Suggestion = "quote a value that contains \": \""
	}
	return f
}

// position returns the position of a byte.
func position(source []byte, offset int) Pos {
	before := source[:max(offset, 0)]
	lineStart := bytes.LastIndexByte(before, '\n') + 1
	return Pos{bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[lineStart:]) + 1}
}

// lineAt returns a line of the source.
func lineAt(source []byte, line int) string {
	return string(bytes.TrimPrefix(upToLine(source, line), upToLine(source, line-1)))
}

func upToLine(source []byte, line int) []byte {
	end := 0
	for range line {
		i := bytes.IndexByte(source[end:], '\n')
		if i < 0 {
			return source
		}
		end += i + 1
	}
	return source[:end]
}

func locate(source []byte) (pos Pos, message string, ok bool) {
	const maxBytes, maxBrackets = 64 << 10, 500
	if len(source) > maxBytes || bytes.Count(source, []byte("["))+bytes.Count(source, []byte("{")) > maxBrackets {
		return Pos{}, "", false
	}
	// a panic of the second parser must not propagate
	defer func() {
		if r := recover(); r != nil {
			pos, message, ok = Pos{}, fmt.Sprint(r), false
		}
	}()
	_, err := parser.ParseBytes(source, 0)
	var se *goccy.SyntaxError
	if !errors.As(err, &se) || se.Token == nil || se.Token.Position == nil {
		return Pos{}, "", false
	}
	return Pos{se.Token.Position.Line, se.Token.Position.Column}, se.Message, true
}
