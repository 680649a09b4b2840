package jsoncodec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Unmarshal reads one JSON object into m, which it resets first. Errors are one line, with line and column.
func Unmarshal(data []byte, m proto.Message) error {
	if err := checkSyntax(data); err != nil {
		return err
	}
	d := m.ProtoReflect().Descriptor()
	if !holdsJSONValue(d, nil) {
		return plain(protojson.Unmarshal(data, m))
	}
	err := protojson.Unmarshal(rewrite(data, d, wrap), m)
	if err == nil {
		return nil
	}
	// Wrapped values are wider than the caller's text; the error's column must refer to the caller's text.
	if again := protojson.Unmarshal(rewrite(data, d, blank), m.ProtoReflect().New().Interface()); again != nil {
		err = again
	}
	return plain(err)
}

func checkSyntax(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("the body is empty: send a JSON object, at least {}")
	}
	if !utf8.Valid(data) {
		return errors.New("the body is not valid UTF-8")
	}
	var value json.RawMessage
	err := json.Unmarshal(data, &value)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &syntax):
		return err
	case syntax.Offset >= int64(len(data)) && strings.HasPrefix(syntax.Error(), "unexpected end"):
		return errors.New("the JSON ends before it is complete")
	}
	before := data[:max(0, syntax.Offset-1)]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Errorf("(line %d:%d): not JSON: %w", line, column, err)
}

// plain removes protojson's prefix, in which the space is sometimes a non-breaking one to keep programs from comparing
// texts.
func plain(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimLeft(strings.TrimPrefix(err.Error(), "proto:"), " \u00a0"))
}

// wrap converts an inline value to the wire form of JsonValue.
func wrap(dst, raw []byte) []byte {
	dst = append(dst, `{"json":`...)
	dst = appendString(dst, string(raw))
	return append(dst, '}')
}

// blank returns an empty message of the value's extent, line by line (at least two columns).
func blank(dst, raw []byte) []byte {
	dst = append(dst, '{')
	if len(raw) > 1 {
		for _, r := range string(raw[1 : len(raw)-1]) {
			if r != '\n' {
				r = ' '
			}
			dst = append(dst, byte(r))
		}
	}
	return append(dst, '}')
}

// rewrite copies a message's valid JSON and applies replace to every value in the position of a JsonValue. All other
// text is copied unchanged, so that protojson detects and names errors in it.
func rewrite(data []byte, d protoreflect.MessageDescriptor, replace func(dst, raw []byte) []byte) []byte {
	w := rewriter{src: data, replace: replace}
	begin := len(data) - len(bytes.TrimLeft(data, " \t\r\n"))
	w.value(d, begin, len(bytes.TrimRight(data, " \t\r\n")))
	return append(w.dst, data[w.copied:]...)
}

type rewriter struct {
	src     []byte
	dst     []byte
	copied  int // length of the prefix of src that is in dst
	replace func(dst, raw []byte) []byte
}

// value rewrites src[begin:end], which is in the position of a message of this type.
func (w *rewriter) value(d protoreflect.MessageDescriptor, begin, end int) {
	if isJSONValue(d) {
		w.dst = append(w.dst, w.src[w.copied:begin]...)
		w.dst = w.replace(w.dst, w.src[begin:end])
		w.copied = end
		return
	}
	if w.src[begin] != '{' {
		return
	}
	w.each(begin, end, func(name string, begin, end int) {
		field := d.Fields().ByJSONName(name)
		if field == nil {
			field = d.Fields().ByName(protoreflect.Name(name))
		}
		if field != nil {
			w.field(field, begin, end)
		}
	})
}

func (w *rewriter) field(field protoreflect.FieldDescriptor, begin, end int) {
	element, opening := field.Message(), byte(0)
	switch {
	case field.IsMap():
		element, opening = field.MapValue().Message(), '{'
	case field.IsList():
		opening = '['
	}
	if element == nil || !holdsJSONValue(element, nil) {
		return
	}
	if opening == 0 {
		w.value(element, begin, end)
		return
	}
	if w.src[begin] == opening {
		w.each(begin, end, func(_ string, begin, end int) { w.value(element, begin, end) })
	}
}

// each calls fn with the positions of the elements of the object or list src[begin:end]; an object's elements have
// names.
func (w *rewriter) each(begin, end int, fn func(name string, begin, end int)) {
	decoder := json.NewDecoder(bytes.NewReader(w.src[begin:end]))
	opening, err := decoder.Token()
	if err != nil {
		return
	}
	for decoder.More() {
		name := ""
		if opening == json.Delim('{') {
			key, err := decoder.Token()
			if err != nil {
				return
			}
			name, _ = key.(string)
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return
		}
		stop := begin + int(decoder.InputOffset())
		fn(name, stop-len(raw), stop)
	}
}

// holdsJSONValue reports whether a message of this type can contain a JsonValue at any depth.
func holdsJSONValue(d protoreflect.MessageDescriptor, seen []protoreflect.FullName) bool {
	if isJSONValue(d) {
		return true
	}
	if slices.Contains(seen, d.FullName()) {
		return false
	}
	seen = append(seen, d.FullName())
	for i := range d.Fields().Len() {
		if sub := d.Fields().Get(i).Message(); sub != nil && holdsJSONValue(sub, seen) {
			return true
		}
	}
	return false
}
