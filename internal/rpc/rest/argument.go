package rest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// arguments returns a request message with the fields that path and query give. An error names the parameter: one that
// cannot be parsed, that the request message does not have, that occurs twice, or that is also in the path.
func (m Match) arguments(rawQuery string) (proto.Message, error) {
	message := m.input.New().Interface()
	for _, v := range m.Variables {
		name := v.Field.JSONName()
		if err := add(message, []protoreflect.FieldDescriptor{v.Field}, name, fmt.Sprintf("%q of the path", name),
			v.Value); err != nil {
			return nil, err
		}
	}
	query, err := parameters(rawQuery)
	if err != nil {
		return nil, err
	}
	given := map[protoreflect.FullName]string{}
	for _, p := range query {
		path := m.resolve(p.name)
		if len(path) == 0 {
			return nil, invalid(p.name, "there is no parameter %q", p.name)
		}
		if m.inPath(path[0]) {
			return nil, invalid(p.name, "parameter %q is a part of the path: leave it out of the query", p.name)
		}
		field := path[len(path)-1]
		if before, ok := given[field.FullName()]; ok && (!field.IsList() || before != p.name) {
			return nil, invalid(p.name, "parameter %q is given more than once", p.name)
		}
		given[field.FullName()] = p.name
		if err := add(message, path, p.name, fmt.Sprintf("parameter %q", p.name), p.value); err != nil {
			return nil, err
		}
	}
	return message, nil
}

// inPath reports whether the path has a value of the field.
func (m Match) inPath(field protoreflect.FieldDescriptor) bool {
	return slices.ContainsFunc(m.Variables, func(v Variable) bool { return v.Field == field })
}

// resolve returns the fields along a parameter: one of the request, or, where the query is the whole request, one of a
// message of the API in it, which has no parameter of its own. It returns none if there is no such field.
func (m Match) resolve(name string) []protoreflect.FieldDescriptor {
	input := m.Method.Input()
	if field := fieldOf(input, name); field != nil && (m.Body || !isGroup(field)) {
		return []protoreflect.FieldDescriptor{field}
	}
	for i := range input.Fields().Len() {
		outer := input.Fields().Get(i)
		if m.Body || !isGroup(outer) {
			continue
		}
		if field := fieldOf(outer.Message(), name); field != nil {
			return []protoreflect.FieldDescriptor{outer, field}
		}
	}
	return nil
}

// isGroup reports whether a field is a message of the API, as opposed to a time or a length of time, which are single
// values.
func isGroup(field protoreflect.FieldDescriptor) bool {
	return field.Message() != nil && !field.IsList() && !field.IsMap() &&
		field.Message().ParentFile().Package() == field.ParentFile().Package()
}

func fieldOf(message protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if field := message.Fields().ByJSONName(name); field != nil {
		return field
	}
	return message.Fields().ByName(protoreflect.Name(name))
}

// add reads the text of an argument into the field at the end of path; a list gets one more element. In the JSON of
// Protobuf, every type but bool may be a string.
func add(message proto.Message, path []protoreflect.FieldDescriptor, name, subject, text string) error {
	if !utf8.ValidString(text) {
		return invalid(name, "%s is not UTF-8", subject)
	}
	leaf := path[len(path)-1]
	var value any = text
	if leaf.Kind() == protoreflect.BoolKind && (text == "true" || text == "false") {
		value = text == "true"
	}
	if leaf.IsList() {
		value = []any{value}
	}
	for _, field := range slices.Backward(path) {
		value = map[string]any{field.JSONName(): value}
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return err
	}
	argument := message.ProtoReflect().New().Interface()
	if err := protojson.Unmarshal(encoded, argument); err != nil {
		return invalid(name, "%s is %q: %s", subject, text, expected(leaf, err))
	}
	proto.Merge(message, argument)
	return nil
}

// expected returns what a value of the field must be, which for some types the error of the decoder does not say.
func expected(field protoreflect.FieldDescriptor, err error) string {
	switch field.Kind() { //nolint:exhaustive // the error describes other types
	case protoreflect.BoolKind:
		return "give true or false"
	case protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		return "give a whole number"
	}
	_, why, _ := strings.Cut(err.Error(), "): ")
	return why
}

// parameter is a name and a value in a query.
type parameter struct{ name, value string }

// parameters returns the parameters of a query, in order. Unlike [url.ParseQuery] it drops none: text that it cannot
// parse is an error.
func parameters(query string) ([]parameter, error) {
	var all []parameter
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		escapedName, escapedValue, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(escapedName)
		if err != nil {
			return nil, invalid(escapedName, "the name of parameter %q cannot be decoded: %v", escapedName, err)
		}
		if strings.Contains(pair, ";") {
			return nil, invalid(name,
				"parameter %q contains a semicolon: separate parameters by &, and write %%3B for one in a value", name)
		}
		value, err := url.QueryUnescape(escapedValue)
		if err != nil {
			return nil, invalid(name, "the value of parameter %q cannot be decoded: %v", name, err)
		}
		all = append(all, parameter{name, value})
	}
	return all, nil
}

func invalid(name, format string, args ...any) error {
	return apperror.New(apperror.Invalid, apperror.InvalidArgument, "request: "+format, args...).
		WithField(name, "cannot be used here")
}
