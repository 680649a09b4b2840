package rest

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// Check returns the parameters of the query with their fields, in order. If the query or the body contradicts the match, it returns an error that names
// the parameter: one that cannot be parsed, that the request message does not have, that occurs twice, or that is also in the path or the
// body; or a member of the body whose value differs from the path. A body that is not a JSON object passes, because its decoder describes
// the error better.
func (m Match) Check(rawQuery string, body []byte) ([]Parameter, error) {
	members := m.members(body)
	if err := m.checkBody(members); err != nil {
		return nil, err
	}
	query, err := Query(rawQuery)
	if err != nil {
		return nil, err
	}
	given := map[protoreflect.FullName]string{}
	for i, p := range query {
		if p.path = m.resolve(p.Name); p.path == nil {
			return nil, invalid(p.Name, "there is no parameter %q", p.Name)
		}
		if m.variable(p.path[0].Name()) != nil {
			return nil, invalid(p.Name, "parameter %q is a part of the path: leave it out of the query", p.Name)
		}
		if _, ok := members[p.path[0].JSONName()]; ok {
			return nil, invalid(p.Name, "parameter %q is in the body as well: give it once", p.Name)
		}
		field := p.field()
		if before, ok := given[field.FullName()]; ok && (!field.IsList() || before != p.Name) {
			return nil, invalid(p.Name, "parameter %q is given more than once", p.Name)
		}
		given[field.FullName()] = p.Name
		if err := checkValue(field, p); err != nil {
			return nil, err
		}
		query[i] = p
	}
	for _, v := range m.Variables {
		if err := CheckVariable(v.Field.JSONName(), v.Value); err != nil {
			return nil, err
		}
	}
	return query, nil
}

// CheckVariable returns an error that names a path variable if its value is not UTF-8, which no Protobuf message can carry.
func CheckVariable(name, value string) error {
	if !utf8.ValidString(value) {
		return invalid(name, "%q of the path is not UTF-8", name)
	}
	return nil
}

// checkValue returns an error if a value does not fit the type of its field. The decoder's error would not name the parameter.
func checkValue(field protoreflect.FieldDescriptor, p Parameter) error {
	switch field.Kind() { //nolint:exhaustive // other types accept any text
	case protoreflect.StringKind:
		if !utf8.ValidString(p.Value) {
			return invalid(p.Name, "the value of parameter %q is not UTF-8", p.Name)
		}
	case protoreflect.BoolKind:
		if p.Value != "true" && p.Value != "false" {
			return invalid(p.Name, "parameter %q is %q: give true or false", p.Name, p.Value)
		}
	case protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		if _, err := strconv.ParseFloat(strings.Trim(p.Value, `"`), 64); err != nil {
			return invalid(p.Name, "parameter %q is %q: give a whole number", p.Name, p.Value)
		}
	}
	return nil
}

// Parameter is a name and a value in a query.
type Parameter struct {
	Name, Value string

	// path is the field of the request, or a field of a message in the request with the field of the message.
	path []protoreflect.FieldDescriptor
}

// field returns the field with the value.
func (p Parameter) field() protoreflect.FieldDescriptor { return p.path[len(p.path)-1] }

// name returns the path of the field, with dots.
func (p Parameter) name() string {
	names := make([]string, len(p.path))
	for i, field := range p.path {
		names[i] = string(field.Name())
	}
	return strings.Join(names, ".")
}

// Query returns the parameters of a query, in order. Unlike [url.ParseQuery] it drops none: text that it cannot parse is an error.
func Query(raw string) ([]Parameter, error) {
	var all []Parameter
	for pair := range strings.SplitSeq(raw, "&") {
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
		all = append(all, Parameter{Name: name, Value: value})
	}
	return all, nil
}

// resolve returns the field of a parameter: one of the request, or, where the query is the whole request, one of a message of the API
// in it, which has no parameter of its own. It returns none if there is no such field.
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

// isGroup reports whether a field is a message of the API, as opposed to a time or a length of time, which are single values.
func isGroup(field protoreflect.FieldDescriptor) bool {
	return field.Message() != nil && !field.IsList() && !field.IsMap() && field.Message().ParentFile().Package() == field.ParentFile().Package()
}

func fieldOf(message protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if field := message.Fields().ByJSONName(name); field != nil {
		return field
	}
	return message.Fields().ByName(protoreflect.Name(name))
}

func (m Match) variable(name protoreflect.Name) *Variable {
	i := slices.IndexFunc(m.Variables, func(v Variable) bool { return v.Field.Name() == name })
	if i < 0 {
		return nil
	}
	return &m.Variables[i]
}

// members returns the members of the body by the JSON names of their fields; unknown members are left to the decoder.
func (m Match) members(body []byte) map[string]json.RawMessage {
	var raw map[string]json.RawMessage
	if !m.Body || len(body) == 0 || json.Unmarshal(body, &raw) != nil {
		return nil
	}
	members := make(map[string]json.RawMessage, len(raw))
	for name, value := range raw {
		if field := fieldOf(m.Method.Input(), name); field != nil {
			members[field.JSONName()] = value
		}
	}
	return members
}

// checkBody compares the members with the path. A member that is null or its type's zero value counts as absent, as everywhere in
// the JSON of Protobuf.
func (m Match) checkBody(members map[string]json.RawMessage) error {
	for _, v := range m.Variables {
		name := v.Field.JSONName()
		raw, ok := members[name]
		if !ok {
			continue
		}
		inBody := decode(m.Method.Input(), v.Field, raw)
		if inBody == nil || !inBody.Has(v.Field) {
			continue
		}
		text, err := json.Marshal(v.Value)
		if err != nil {
			return err
		}
		inPath := decode(m.Method.Input(), v.Field, text)
		if inPath == nil || !inPath.Get(v.Field).Equal(inBody.Get(v.Field)) {
			return invalid(name, "%q in the body differs from %q in the path: leave it out of the body", name, v.Value)
		}
	}
	return nil
}

// decode parses one field's JSON; it returns nil if the JSON does not fit the field.
func decode(kind protoreflect.MessageDescriptor, field protoreflect.FieldDescriptor, raw json.RawMessage) protoreflect.Message {
	text, err := json.Marshal(map[string]json.RawMessage{field.JSONName(): raw})
	if err != nil {
		return nil
	}
	message := dynamicpb.NewMessage(kind)
	if protojson.Unmarshal(text, message) != nil {
		return nil
	}
	return message
}

func invalid(name, format string, args ...any) error {
	return apperror.New(apperror.Invalid, apperror.InvalidArgument, "request: "+format, args...).WithField(name, "cannot be used here")
}
