package jsoncodec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
)

// Append appends the JSON of m to dst. It fails if a JsonValue does not hold exactly one JSON value.
func Append(dst []byte, m proto.Message) ([]byte, error) {
	return appendMessage(dst, m.ProtoReflect())
}

func appendMessage(dst []byte, m protoreflect.Message) ([]byte, error) {
	if isJSONValue(m.Descriptor()) {
		return appendJSONValue(dst, m)
	}
	// Well-known types have their own forms (a timestamp is a string), and error types are not part of this mapping.
	if strings.HasPrefix(string(m.Descriptor().FullName()), "google.") {
		text, err := protojson.MarshalOptions{}.Marshal(m.Interface())
		if err != nil {
			return nil, err
		}
		return appendCompact(dst, text) // protojson varies its whitespace deliberately
	}
	dst = append(dst, '{')
	first := true
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if !written(m, field) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendString(dst, field.JSONName())
		dst = append(dst, ':')
		var err error
		if dst, err = appendField(dst, field, m.Get(field)); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func written(m protoreflect.Message, field protoreflect.FieldDescriptor) bool {
	switch {
	case m.Has(field):
		return true
	case field.HasPresence():
		return false
	case field.IsList(), field.IsMap():
		return true
	default:
		return field.Kind() != protoreflect.StringKind && field.Kind() != protoreflect.BytesKind
	}
}

func appendField(dst []byte, field protoreflect.FieldDescriptor, v protoreflect.Value) ([]byte, error) {
	switch {
	case field.IsMap():
		return appendMap(dst, field, v.Map())
	case field.IsList():
		return appendList(dst, field, v.List())
	default:
		return appendScalar(dst, field, v)
	}
}

func appendList(dst []byte, field protoreflect.FieldDescriptor, list protoreflect.List) ([]byte, error) {
	dst = append(dst, '[')
	for i := range list.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendScalar(dst, field, list.Get(i)); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func appendMap(dst []byte, field protoreflect.FieldDescriptor, m protoreflect.Map) ([]byte, error) {
	keys := make([]protoreflect.MapKey, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return strings.Compare(a.String(), b.String()) })
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, k.String())
		dst = append(dst, ':')
		var err error
		if dst, err = appendScalar(dst, field.MapValue(), m.Get(k)); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func appendScalar(dst []byte, field protoreflect.FieldDescriptor, v protoreflect.Value) ([]byte, error) {
	switch field.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return appendMessage(dst, v.Message())
	case protoreflect.BoolKind:
		return strconv.AppendBool(dst, v.Bool()), nil
	case protoreflect.StringKind:
		return appendString(dst, v.String()), nil
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind,
		protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return strconv.AppendInt(dst, v.Int(), 10), nil
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return strconv.AppendUint(dst, v.Uint(), 10), nil
	case protoreflect.EnumKind:
		if value := field.Enum().Values().ByNumber(v.Enum()); value != nil {
			return appendString(dst, string(value.Name())), nil
		}
		return strconv.AppendInt(dst, int64(v.Enum()), 10), nil
	case protoreflect.FloatKind, protoreflect.DoubleKind, protoreflect.BytesKind:
		text, err := json.Marshal(v.Interface())
		if err != nil {
			return nil, fmt.Errorf("write field %q: %w", field.Name(), err)
		}
		return append(dst, text...), nil
	}
	return nil, fmt.Errorf("write field %q: kind %v has no JSON form", field.Name(), field.Kind())
}

// appendJSONValue writes the value in place of the message. A message without text is written as null.
func appendJSONValue(dst []byte, m protoreflect.Message) ([]byte, error) {
	text := m.Get(jsonField(m.Descriptor())).String()
	if text == "" {
		return append(dst, "null"...), nil
	}
	dst, err := appendCompact(dst, []byte(text))
	if err != nil {
		return nil, fmt.Errorf("write a JSON value: it holds no valid JSON: %w", err)
	}
	return dst, nil
}

func appendCompact(dst, text []byte) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	if err := json.Compact(buf, text); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// appendString quotes s without escaping <, > and &, which are common in expressions.
func appendString(dst []byte, s string) []byte {
	if isPlain(s) {
		return append(append(append(dst, '"'), s...), '"')
	}
	buf := bytes.NewBuffer(dst)
	encoder := json.NewEncoder(buf)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) //nolint:errchkjson // a string always has a JSON form and a buffer always takes it
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// isPlain reports whether s needs no escapes, like nearly all names, states and times.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func isJSONValue(d protoreflect.MessageDescriptor) bool {
	return d.FullName() == (*signalboxv1.JsonValue)(nil).ProtoReflect().Descriptor().FullName()
}

func jsonField(d protoreflect.MessageDescriptor) protoreflect.FieldDescriptor {
	return d.Fields().ByNumber(1)
}
