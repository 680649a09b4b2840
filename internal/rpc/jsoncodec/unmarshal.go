package jsoncodec

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// errNotPlain says that the text does not have the shape its message wants. What exactly is wrong with it is left to
// protojson, which reads the same text.
var errNotPlain = errors.New("not the shape of its message")

// Unmarshal reads one JSON object into m, which is reset first. Errors are one line with line and column.
func Unmarshal(data []byte, m proto.Message) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("the body is empty: send a JSON object, at least {}")
	}
	if !utf8.Valid(data) {
		return errors.New("the body is not valid UTF-8")
	}
	text := data
	if holdsJSONValue(m.ProtoReflect().Descriptor(), nil) {
		wrapped, err := rewrite(data, m.ProtoReflect().Descriptor(), wrap)
		switch {
		case errors.Is(err, errNotPlain):
		case err != nil:
			return err
		default:
			text = wrapped
		}
	}
	err := protojson.Unmarshal(text, m)
	if err == nil {
		return nil
	}
	if blanked, rewriteErr := rewrite(data, m.ProtoReflect().Descriptor(), blank); rewriteErr == nil {
		// Wrapped values stand wider than what the caller sent; the error's column must be the caller's.
		if again := protojson.Unmarshal(blanked, m.ProtoReflect().New().Interface()); again != nil {
			err = again
		}
	}
	return errors.New(plain(err))
}

// plain takes off protojson's prefix, whose space is sometimes a non-breaking one so that nobody compares texts.
func plain(err error) string {
	text := strings.TrimLeft(strings.TrimPrefix(err.Error(), "proto:"), " \u00a0")
	if text == "unexpected EOF" {
		return "the JSON ends before it is complete"
	}
	return text
}

// wrap gives the wire form of JsonValue for an inline value.
func wrap(dst, raw []byte) []byte {
	dst = append(dst, `{"json":`...)
	dst = appendString(dst, string(raw))
	return append(dst, '}')
}

// blank gives an empty message that takes the value's room, line by line (two columns at the least).
func blank(dst, raw []byte) []byte {
	dst = append(dst, "{}"...)
	for _, r := range string(raw[min(2, len(raw)):]) {
		if r == '\n' {
			dst = append(dst, '\n')
		} else {
			dst = append(dst, ' ')
		}
	}
	return dst
}

// rewrite copies a message's JSON, with replace applied to every value that stands where a JsonValue belongs.
func rewrite(data []byte, d protoreflect.MessageDescriptor, replace func(dst, raw []byte) []byte) ([]byte, error) {
	if isJSONValue(d) {
		value := bytes.TrimSpace(data)
		if !json.Valid(value) {
			return nil, errNotPlain
		}
		return replace(make([]byte, 0, len(value)+16), value), nil
	}
	w := rewriter{src: data, dec: json.NewDecoder(bytes.NewReader(data)), replace: replace}
	if err := w.message(d); err != nil {
		return nil, err
	}
	return append(w.dst, data[w.copied:]...), nil
}

// rewriter walks tokens and copies everything between the values that it replaces as it stands, so that whatever
// else is wrong with the text is still there for protojson to name.
type rewriter struct {
	src     []byte
	dec     *json.Decoder
	dst     []byte
	copied  int
	replace func(dst, raw []byte) []byte
}

func (w *rewriter) message(d protoreflect.MessageDescriptor) error {
	return w.members(func(name string) error {
		field := d.Fields().ByJSONName(name)
		if field == nil {
			field = d.Fields().ByName(protoreflect.Name(name))
		}
		switch {
		case field == nil:
			return w.skip()
		case field.IsMap():
			return w.mapField(field.MapValue())
		case field.IsList():
			return w.list(field)
		default:
			return w.value(field)
		}
	})
}

// members calls value for each member of the object that comes next; a null in its place has none.
func (w *rewriter) members(value func(name string) error) error {
	opening, err := w.dec.Token()
	if err != nil {
		return errNotPlain
	}
	if opening == nil {
		return nil
	}
	if opening != json.Delim('{') {
		return errNotPlain
	}
	for w.dec.More() {
		key, err := w.dec.Token()
		if err != nil {
			return errNotPlain
		}
		name, ok := key.(string)
		if !ok {
			return errNotPlain
		}
		if err := value(name); err != nil {
			return err
		}
	}
	return w.closing()
}

func (w *rewriter) mapField(element protoreflect.FieldDescriptor) error {
	if !holds(element) {
		return w.skip()
	}
	return w.members(func(string) error { return w.value(element) })
}

func (w *rewriter) list(field protoreflect.FieldDescriptor) error {
	if !holds(field) {
		return w.skip()
	}
	opening, err := w.dec.Token()
	if err != nil {
		return errNotPlain
	}
	if opening == nil {
		return nil
	}
	if opening != json.Delim('[') {
		return errNotPlain
	}
	for w.dec.More() {
		if err := w.value(field); err != nil {
			return err
		}
	}
	return w.closing()
}

func (w *rewriter) value(field protoreflect.FieldDescriptor) error {
	switch {
	case !holds(field):
		return w.skip()
	case isJSONValue(field.Message()):
		return w.swap()
	default:
		return w.message(field.Message())
	}
}

func (w *rewriter) swap() error {
	var raw json.RawMessage
	if err := w.dec.Decode(&raw); err != nil {
		return errNotPlain
	}
	end := int(w.dec.InputOffset())
	begin := end - len(raw)
	w.dst = append(w.dst, w.src[w.copied:begin]...)
	w.dst = w.replace(w.dst, raw)
	w.copied = end
	return nil
}

func (w *rewriter) skip() error {
	var raw json.RawMessage
	if err := w.dec.Decode(&raw); err != nil {
		return errNotPlain
	}
	return nil
}

func (w *rewriter) closing() error {
	if _, err := w.dec.Token(); err != nil {
		return errNotPlain
	}
	return nil
}

func holds(field protoreflect.FieldDescriptor) bool {
	return field.Message() != nil && holdsJSONValue(field.Message(), nil)
}

// holdsJSONValue tells whether a message of this type can hold a JsonValue at any depth.
func holdsJSONValue(d protoreflect.MessageDescriptor, seen []protoreflect.FullName) bool {
	if isJSONValue(d) {
		return true
	}
	for _, name := range seen {
		if name == d.FullName() {
			return false
		}
	}
	seen = append(seen, d.FullName())
	for i := range d.Fields().Len() {
		if sub := d.Fields().Get(i).Message(); sub != nil && holdsJSONValue(sub, seen) {
			return true
		}
	}
	return false
}
