package main

import (
	"fmt"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// addSchemas adds the schemas of all messages.
func (g *openAPIGenerator) addSchemas() error {
	schemas := child(child(g.root, "components"), "schemas")
	add := func(m protoreflect.MessageDescriptor, fields []protoreflect.FieldDescriptor) error {
		name := string(m.Name())
		if get(schemas, name) != nil {
			return fmt.Errorf("add the schema %q: there are two of this name", name)
		}
		schema, err := g.object(m, fields)
		if err == nil {
			put(schemas, name, schema)
		}
		return err
	}
	var messages []protoreflect.MessageDescriptor
	g.files.RangeFilesByPackage(protos, func(file protoreflect.FileDescriptor) bool {
		for i := range file.Messages().Len() {
			m := file.Messages().Get(i)
			if (g.answers[m.FullName()] || g.requests[m.FullName()]) && m.Name() != jsonValue {
				messages = append(messages, m)
			}
		}
		return true
	})
	sortByName(messages)
	for _, m := range messages {
		if err := add(m, fieldsOf(m)); err != nil {
			return err
		}
	}
	for _, o := range g.bodies {
		if err := add(o.method.Input(), o.arguments()); err != nil {
			return err
		}
	}
	for _, e := range enumerations() {
		if get(schemas, e.name) != nil {
			return fmt.Errorf("add the schema %q: there are two of this name", e.name)
		}
		put(schemas, e.name, mapping("type", "string", "enum", e.values))
	}
	return nil
}

func fieldsOf(m protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	fields := make([]protoreflect.FieldDescriptor, m.Fields().Len())
	for i := range fields {
		fields[i] = m.Fields().Get(i)
	}
	return fields
}

// object returns the schema of a message with some of its fields.
//
// A request with a member that the message does not have is refused. An answer may have members that a later release
// adds.
func (g *openAPIGenerator) object(m protoreflect.MessageDescriptor,
	fields []protoreflect.FieldDescriptor) (*yaml.Node, error) {
	properties, required := mapping(), []string{}
	for _, field := range fields {
		schema, err := g.property(field)
		if err != nil {
			return nil, err
		}
		put(properties, field.JSONName(), schema)
		if g.isRequired(field) {
			required = append(required, field.JSONName())
		}
	}
	schema := mapping("type", "object", "description", comment(m))
	if len(required) > 0 {
		put(schema, "required", required)
	}
	if len(properties.Content) > 0 {
		put(schema, "properties", properties)
	}
	if !g.answers[m.FullName()] {
		schema.Content = append(schema.Content, node("additionalProperties"), node(false))
	}
	return schema, nil
}

// isRequired reports whether a field is always present: in answers, jsoncodec writes lists, maps, numbers and booleans
// in any case.
func (g *openAPIGenerator) isRequired(field protoreflect.FieldDescriptor) bool {
	listed := g.tables.isRequired(field)
	m := field.ContainingMessage().FullName()
	if !g.answers[m] || g.requests[m] {
		return listed
	}
	always := !field.HasPresence() &&
		(field.IsList() || field.IsMap() || field.Kind() != protoreflect.StringKind && field.Kind() != protoreflect.BytesKind)
	return always || listed
}

// property returns the schema of a field with its comment.
func (g *openAPIGenerator) property(field protoreflect.FieldDescriptor) (*yaml.Node, error) {
	schema, err := g.fieldSchema(field)
	if err != nil {
		return nil, err
	}
	put(schema, "description", comment(field))
	return schema, nil
}

func (g *openAPIGenerator) fieldSchema(field protoreflect.FieldDescriptor) (*yaml.Node, error) {
	enumeration, err := g.tables.enumeration(field)
	if err != nil {
		return nil, err
	}
	switch {
	case field.IsMap():
		inner, err := valueSchema(field.MapValue(), enumeration)
		if err != nil {
			return nil, err
		}
		return mapping("type", "object", "additionalProperties", inner), nil
	case field.IsList():
		inner, err := valueSchema(field, enumeration)
		if err != nil {
			return nil, err
		}
		return mapping("type", "array", "items", inner), nil
	default:
		return valueSchema(field, enumeration)
	}
}

// jsonValue is the message that stands for any JSON value.
const jsonValue = protoreflect.Name("JsonValue")

// valueSchema returns the schema of one value of a field, whose enumeration is named if it has one.
func valueSchema(field protoreflect.FieldDescriptor, enumeration string) (*yaml.Node, error) {
	if enumeration != "" {
		return reference(enumeration), nil
	}
	switch field.Kind() {
	case protoreflect.StringKind:
		return mapping("type", "string"), nil
	case protoreflect.BytesKind:
		return mapping("type", "string", "contentEncoding", "base64"), nil
	case protoreflect.BoolKind:
		return mapping("type", "boolean"), nil
	case protoreflect.Int32Kind:
		return mapping("type", "integer", "format", "int32"), nil
	case protoreflect.Int64Kind:
		return mapping("type", "integer", "format", "int64"), nil
	case protoreflect.DoubleKind:
		return mapping("type", "number", "format", "double"), nil
	case protoreflect.MessageKind:
		return messageSchema(field.Message())
	default:
		return nil, fmt.Errorf("describe the field %s: the kind %s is not supported", field.FullName(), field.Kind())
	}
}

func messageSchema(m protoreflect.MessageDescriptor) (*yaml.Node, error) {
	switch name := m.FullName(); {
	case name == "google.protobuf.Timestamp":
		return mapping("type", "string", "format", "date-time"), nil
	case name == "google.protobuf.Duration":
		return reference("Duration"), nil
	case name.Parent() == protos:
		return reference(string(m.Name())), nil
	default:
		return nil, fmt.Errorf("describe the message %s: only those of %s, times and durations are supported", name, protos)
	}
}

// reference returns a reference to a schema.
func reference(name string) *yaml.Node { return mapping("$ref", schemaPrefix+name) }
