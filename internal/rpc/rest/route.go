package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
)

// Table holds the paths of services: it matches REST requests with the HTTP annotations of the protos. It is immutable.
//
//	table, err := rest.NewTable("/signalbox.v1.RunService/", …)
//	match, ok := table.Match(r.Method, r.URL.EscapedPath())
//
// A path is split into segments before it is decoded, and each segment is decoded once: an escaped slash or colon is
// part of a value and never a separator.
//
// Matching does not convert values.
type Table struct {
	bindings []binding
}

// binding is one path of a method.
type binding struct {
	match    Match // without variables
	verb     string
	segments []segment
	suffix   string // text after the colon of the last segment; empty without one
}

// segment is one part of a path template: a literal, or a variable where field is set.
type segment struct {
	literal string
	field   protoreflect.FieldDescriptor
	rest    bool // the variable takes this segment and all that follow
}

// Variable is one value in a path.
type Variable struct {
	Field protoreflect.FieldDescriptor
	Value string
}

// Match is the method of a request with the values in its path.
type Match struct {
	Method    protoreflect.MethodDescriptor
	Variables []Variable
	// Body reports that the body is the request message without the fields in the path. Otherwise there is no body.
	Body bool

	input  protoreflect.MessageType
	events bool // the body has events in a form of CloudEvents
}

// service returns the path of the service's Connect handler.
func (m Match) service() string { return "/" + string(m.Method.Parent().FullName()) + "/" }

// Rule is one HTTP annotation of a method.
type Rule struct {
	Verb, Template string
	// Body reports that the body is the request message without the fields in the path; otherwise they are the query.
	Body bool
}

// Rules returns the HTTP annotations of a method.
func Rules(method protoreflect.MethodDescriptor) ([]Rule, error) {
	first, _ := proto.GetExtension(method.Options(), annotations.E_Http).(*annotations.HttpRule)
	if first == nil {
		return nil, nil
	}
	var rules []Rule
	for _, r := range append([]*annotations.HttpRule{first}, first.GetAdditionalBindings()...) {
		pattern := r.ProtoReflect().WhichOneof(r.ProtoReflect().Descriptor().Oneofs().ByName("pattern"))
		if pattern == nil || pattern.Kind() != protoreflect.StringKind || (r.GetBody() != "" && r.GetBody() != "*") {
			return nil, fmt.Errorf("read the HTTP annotation of %s: %v is not supported", method.FullName(), r)
		}
		verb, template := strings.ToUpper(string(pattern.Name())), r.ProtoReflect().Get(pattern).String()
		rules = append(rules, Rule{Verb: verb, Template: template, Body: r.GetBody() == "*"})
	}
	return rules, nil
}

// NewTable returns the table of services, given by the paths of their Connect handlers. Unregistered services have no
// paths.
func NewTable(paths ...string) (*Table, error) {
	t := &Table{}
	for _, path := range paths {
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.Trim(path, "/")))
		service, ok := found.(protoreflect.ServiceDescriptor)
		if err != nil || !ok {
			continue
		}
		for i := range service.Methods().Len() {
			if err := t.add(service.Methods().Get(i)); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

func (t *Table) add(method protoreflect.MethodDescriptor) error {
	rules, err := Rules(method)
	if err != nil {
		return err
	}
	match := Match{Method: method}
	if match.service()+string(method.Name()) == signalboxv1connect.EventServicePublishEventsProcedure {
		match.events = true
		rules = append(rules, Rule{Verb: http.MethodPost, Template: eventsPath, Body: true})
	}
	if len(rules) > 0 && method.IsStreamingServer() && method.Output().FullName() != "google.api.HttpBody" {
		return fmt.Errorf("read the HTTP annotation of %s: only files are streamed", method.FullName())
	}
	if match.input, err = protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName()); err != nil {
		return fmt.Errorf("find the request message of %s: %w", method.FullName(), err)
	}
	for _, r := range rules {
		b := binding{match: match, verb: r.Verb}
		b.match.Body = r.Body
		parts := strings.Split(strings.TrimPrefix(r.Template, "/"), "/")
		parts[len(parts)-1], b.suffix, _ = strings.Cut(parts[len(parts)-1], ":")
		for i, part := range parts {
			s, err := segmentOf(method.Input(), part)
			if err != nil || (s.rest && i != len(parts)-1) {
				return fmt.Errorf("read the HTTP annotation of %s: the segment %q of %q is not supported (%w)", method.FullName(),
					part, r.Template, err)
			}
			b.segments = append(b.segments, s)
		}
		t.bindings = append(t.bindings, b)
	}
	return nil
}

func segmentOf(input protoreflect.MessageDescriptor, part string) (segment, error) {
	inner, isVariable := strings.CutPrefix(part, "{")
	if !isVariable {
		return segment{literal: part}, nil
	}
	inner, closed := strings.CutSuffix(inner, "}")
	name, pattern, _ := strings.Cut(inner, "=")
	field := input.Fields().ByName(protoreflect.Name(name))
	if !closed || field == nil || field.IsList() || (pattern != "" && pattern != "**") {
		return segment{}, fmt.Errorf("%s has no such field, or the pattern is not **", input.FullName())
	}
	return segment{field: field, rest: pattern == "**"}, nil
}

// Match finds the method of a request by its HTTP method and escaped path.
func (t *Table) Match(verb, escapedPath string) (Match, bool) {
	for _, b := range t.bindings {
		if b.verb != verb {
			continue
		}
		if m, ok := b.matches(escapedPath); ok {
			return m, true
		}
	}
	return Match{}, false
}

// Allowed returns the HTTP methods that are supported on this path, sorted; none if the path is unknown.
func (t *Table) Allowed(escapedPath string) []string {
	var verbs []string
	for _, b := range t.bindings {
		if _, ok := b.matches(escapedPath); ok {
			verbs = append(verbs, b.verb)
		}
	}
	slices.Sort(verbs)
	return slices.Compact(verbs)
}

func (b binding) matches(escapedPath string) (Match, bool) {
	m := b.match
	path, rooted := strings.CutPrefix(escapedPath, "/")
	parts := strings.Split(path, "/")
	var suffix string
	var suffixed bool
	parts[len(parts)-1], suffix, suffixed = strings.Cut(parts[len(parts)-1], ":")
	if !rooted || suffix != b.suffix || suffixed != (b.suffix != "") || len(parts) < len(b.segments) {
		return m, false
	}
	for i, s := range b.segments {
		text := parts[i]
		switch {
		case s.rest:
			text = strings.Join(parts[i:], "/")
		case i == len(b.segments)-1 && len(parts) > len(b.segments):
			return m, false
		}
		value, err := url.PathUnescape(text)
		if err != nil || value == "" || (s.field == nil && value != s.literal) {
			return m, false
		}
		if s.field != nil {
			m.Variables = append(m.Variables, Variable{Field: s.field, Value: value})
		}
	}
	return m, true
}
