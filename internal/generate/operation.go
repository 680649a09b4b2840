package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signalbox-dev/signalbox/internal/rpc/rest"
)

// operation is one HTTP annotation of a method.
type operation struct {
	id     string
	method protoreflect.MethodDescriptor
	verb   string
	path   string // with names of variables in braces
	// variables are the fields in the path.
	variables []protoreflect.FieldDescriptor
	// body reports that the other fields are the body; otherwise they are the query.
	body bool
}

// operationsOf returns the operations of a method: none without an HTTP annotation.
func operationsOf(method protoreflect.MethodDescriptor) ([]operation, error) {
	rules, err := rest.Rules(method)
	if err != nil {
		return nil, err
	}
	var operations []operation
	for i, r := range rules {
		o, err := operationOf(method, r)
		if err != nil {
			return nil, fmt.Errorf("read the HTTP annotation of %s: %w", method.FullName(), err)
		}
		if i > 0 {
			_, verb, _ := strings.Cut(o.path, ":")
			o.id = verb + strings.TrimLeftFunc(o.id, unicode.IsLower) // getEvent of …:find is findEvent
		}
		operations = append(operations, o)
	}
	return operations, nil
}

func operationOf(method protoreflect.MethodDescriptor, rule rest.Rule) (operation, error) {
	name := []rune(string(method.Name()))
	name[0] = unicode.ToLower(name[0])
	o := operation{id: string(name), method: method, verb: rule.Verb, path: strings.ReplaceAll(rule.Template, "=**}", "}"),
		body: rule.Body}
	for part := range strings.SplitSeq(o.path, "{") {
		variable, _, found := strings.Cut(part, "}")
		if !found {
			continue
		}
		field := method.Input().Fields().ByName(protoreflect.Name(variable))
		if field == nil {
			return o, errors.New("there is no field " + variable)
		}
		o.path = strings.ReplaceAll(o.path, "{"+variable+"}", "{"+field.JSONName()+"}")
		o.variables = append(o.variables, field)
	}
	return o, nil
}

// arguments returns the fields that are not in the path.
func (o operation) arguments() []protoreflect.FieldDescriptor {
	return slices.DeleteFunc(fieldsOf(o.method.Input()), func(f protoreflect.FieldDescriptor) bool {
		return slices.Contains(o.variables, f)
	})
}

// parameters returns the fields that are in the query. A message of the API stands for its fields there.
func (o operation) parameters() (fields []protoreflect.FieldDescriptor) {
	for _, field := range o.arguments() {
		if m := field.Message(); m != nil && m.ParentFile().Package() == protos {
			fields = append(fields, fieldsOf(m)...)
		} else {
			fields = append(fields, field)
		}
	}
	return fields
}

// isFile reports whether the answer is a file instead of a message.
func (o operation) isFile() bool { return o.method.Output().FullName() == "google.api.HttpBody" }

// addPaths adds all operations.
func (g *openAPIGenerator) addPaths() error {
	paths, ids := child(g.root, "paths"), map[string]bool{}
	for _, o := range g.operations {
		if ids[o.id] {
			return fmt.Errorf("add the operation %s: there are two of this name", o.id)
		}
		ids[o.id] = true
		described, err := g.operation(o)
		if err != nil {
			return err
		}
		put(child(paths, o.path), strings.ToLower(o.verb), described)
	}
	return nil
}

func (g *openAPIGenerator) operation(o operation) (*yaml.Node, error) {
	description := comment(o.method)
	summary, _, _ := strings.Cut(description, ". ")
	summary, _, _ = strings.Cut(summary, "\n")
	described := mapping("tags", []string{string(o.method.Parent().Name())}, "summary", strings.TrimSuffix(summary, "."),
		"description", description, "operationId", o.id)
	parameters := sequence()
	for _, field := range o.variables {
		parameter, err := g.parameter(field, "path", true)
		if err != nil {
			return nil, err
		}
		parameters.Content = append(parameters.Content, parameter)
	}
	if !o.body {
		for _, field := range o.parameters() {
			parameter, err := g.parameter(field, "query", g.tables.isRequired(field))
			if err != nil {
				return nil, err
			}
			parameters.Content = append(parameters.Content, parameter)
		}
	}
	if len(parameters.Content) > 0 {
		put(described, "parameters", parameters)
	}
	if o.body {
		put(described, "requestBody", mapping("required", true, "content",
			mapping("application/json", mapping("schema", reference(string(o.method.Input().Name()))))))
	}
	put(described, "responses", o.responses())
	put(described, "security", o.security())
	return described, nil
}

// parameter describes a field in the path or the query.
func (g *openAPIGenerator) parameter(field protoreflect.FieldDescriptor, in string, required bool) (*yaml.Node, error) {
	schema, err := g.fieldSchema(field)
	if err != nil {
		return nil, err
	}
	return mapping("name", field.JSONName(), "in", in, "description", comment(field), "required", required, "schema",
		schema), nil
}

// files are the types of the files that methods return.
func files() map[protoreflect.Name][]string {
	return map[protoreflect.Name][]string{
		"ExportRun":   {"application/json"},
		"ExportRuns":  {"text/csv", "application/x-ndjson"},
		"ExportAudit": {"text/csv", "application/x-ndjson"},
	}
}

func (o operation) responses() *yaml.Node {
	content := mapping()
	if o.isFile() {
		for _, kind := range files()[o.method.Name()] {
			schema := mapping("type", "string")
			if kind == "application/json" {
				schema = mapping("type", "object")
			}
			put(content, kind, mapping("schema", schema))
		}
	} else {
		put(content, "application/json", mapping("schema", reference(string(o.method.Output().Name()))))
	}
	all := mapping("200", mapping("description", "Success", "content", content))
	for _, e := range errorResponses() {
		if e.applies == nil || e.applies(o) {
			put(all, e.status, mapping("$ref", "#/components/responses/"+e.name))
		}
	}
	return all
}

// security returns how a call is authenticated: reads by a token or a session, which is the default of the document;
// other calls by a token, or by a session with its CSRF token; and signing in by neither.
func (o operation) security() *yaml.Node {
	switch {
	case o.id == "signIn":
		return sequence()
	case o.verb == http.MethodGet:
		return nil
	default:
		none := sequence()
		return sequence(mapping("apiToken", none), mapping("browserSession", none, "csrf", none))
	}
}
