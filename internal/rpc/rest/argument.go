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

// arguments returns a request message with the fields that path and query give. An error names the parameter: one that cannot be parsed, that
// the request message does not have, that occurs twice, or that is also in the path.
func (m Match) arguments(rawQuery string) (proto.Message, error) {
	message := m.input.New().Interface()
	for _, v := range m.Variables {
		name := v.Field.JSONName()
		if err := add(message, []protoreflect.FieldDescriptor{v.Field}, name, fmt.Sprintf("%q of the path", name), v.Value); err != nil {
			return nil, err
		}
	}
	query, err := parameters(rawQuery)
	if err != nil {
		return nil, err
	}
	given := map[string]string{}
	for _, p := range query {
		field, path := m.resolve(p.name)
		if len(path) == 0 {
			return nil, invalid(p.name, "there is no parameter %q", p.name)
		}
		if m.inPath(path[0]) {
			return nil, invalid(p.name, "parameter %q is a part of the path: leave it out of the query", p.name)
		}
		if before, ok := given[field]; ok && (!path[len(path)-1].IsList() || before != p.name) {
			return nil, invalid(p.name, "parameter %q is given more than once", p.name)
		}
		given[field] = p.name
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

// resolve returns the fields along a parameter's dotted name, and the canonical spelling of the name; none if it is unknown.
func (m Match) resolve(name string) (canonical string, path []protoreflect.FieldDescriptor) {
	var names []string
	message := m.Method.Input()
	for part := range strings.SplitSeq(name, ".") {
		if message == nil {
			return "", nil
		}
		field := message.Fields().ByJSONName(part)
		if field == nil {
			field = message.Fields().ByName(protoreflect.Name(part))
		}
		if field == nil {
			return "", nil
		}
		path, names = append(path, field), append(names, string(field.Name()))
		if message = field.Message(); field.IsList() || field.IsMap() {
			message = nil
		}
	}
	return strings.Join(names, "."), path
}

// add reads the text of an argument into the field at the end of path; a list gets one more element. In the JSON of Protobuf, every type but bool
// may be a string.
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

// parameters returns the parameters of a query, in order. Unlike [url.ParseQuery] it drops none: text that it cannot parse is an error.
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
			return nil, invalid(name, "parameter %q contains a semicolon: separate parameters by &, and write %%3B for one in a value", name)
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
	return apperror.New(apperror.Invalid, apperror.InvalidArgument, "request: "+format, args...).WithField(name, "cannot be used here")
}
