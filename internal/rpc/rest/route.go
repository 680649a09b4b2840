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
)

// Table holds the bindings of services: it matches REST requests with the HTTP annotations of the protos, and checks that a request gives each
// of its arguments once: in the path, in the query or in the body. It is immutable.
//
//	table, err := rest.NewTable("/signalbox.v1.RunService/", …)
//	match, ok := table.Match(r.Method, r.URL.EscapedPath())
//	parameters, err := match.Check(r.URL.RawQuery, body)
//
// A path is split into segments before it is decoded, and each segment is decoded once: an escaped slash or colon is part of a value
// and never a separator. [Match.Path] is the same path in a canonical form, which every later reader decodes to the same values.
//
// Matching does not convert values: the decoder of the request message decides whether a text is a number.
type Table struct {
	bindings []binding
}

// binding is one HTTP annotation.
type binding struct {
	verb     string // HTTP method
	method   protoreflect.MethodDescriptor
	segments []segment
	suffix   string // text after the colon of the last segment; empty without one
	body     bool   // the whole body is the request message
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
	// Path is the canonical form of the request's path: decoded once by its reader, each variable has the value in Variables.
	Path string
	// Body reports that the body is the request message without the fields in the path. Otherwise there is no body.
	Body bool
}

// NewTable returns the table of services, given by the paths of their Connect handlers. Unregistered services have no bindings.
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
	rule, _ := proto.GetExtension(method.Options(), annotations.E_Http).(*annotations.HttpRule)
	if rule == nil {
		return nil
	}
	for _, r := range append([]*annotations.HttpRule{rule}, rule.GetAdditionalBindings()...) {
		b, err := bindingOf(method, r)
		if err != nil {
			return fmt.Errorf("read the HTTP annotation of %s: %w", method.FullName(), err)
		}
		t.bindings = append(t.bindings, b)
	}
	return nil
}

func bindingOf(method protoreflect.MethodDescriptor, rule *annotations.HttpRule) (binding, error) {
	b := binding{method: method, body: rule.GetBody() == "*"}
	if !b.body && rule.GetBody() != "" {
		return b, fmt.Errorf("the body is %q: only \"*\" is supported", rule.GetBody())
	}
	var template string
	switch pattern := rule.GetPattern().(type) {
	case *annotations.HttpRule_Get:
		b.verb, template = http.MethodGet, pattern.Get
	case *annotations.HttpRule_Put:
		b.verb, template = http.MethodPut, pattern.Put
	case *annotations.HttpRule_Post:
		b.verb, template = http.MethodPost, pattern.Post
	case *annotations.HttpRule_Delete:
		b.verb, template = http.MethodDelete, pattern.Delete
	case *annotations.HttpRule_Patch:
		b.verb, template = http.MethodPatch, pattern.Patch
	default:
		return b, fmt.Errorf("the pattern %T is not supported", pattern)
	}
	parts := strings.Split(strings.TrimPrefix(template, "/"), "/")
	parts[len(parts)-1], b.suffix, _ = strings.Cut(parts[len(parts)-1], ":")
	for i, part := range parts {
		s, err := segmentOf(method.Input(), part)
		if err != nil || (s.rest && i != len(parts)-1) {
			return b, fmt.Errorf("the segment %q of %q is not supported (%w)", part, template, err)
		}
		b.segments = append(b.segments, s)
	}
	return b, nil
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
		if m, ok := b.match(escapedPath); ok {
			return m, true
		}
	}
	return Match{}, false
}

// Allowed returns the HTTP methods that are supported on this path, sorted; none if the path is unknown.
func (t *Table) Allowed(escapedPath string) []string {
	var verbs []string
	for _, b := range t.bindings {
		if _, ok := b.match(escapedPath); ok {
			verbs = append(verbs, b.verb)
		}
	}
	slices.Sort(verbs)
	return slices.Compact(verbs)
}

func (b binding) match(escapedPath string) (Match, bool) {
	m := Match{Method: b.method, Body: b.body}
	path, rooted := strings.CutPrefix(escapedPath, "/")
	parts := strings.Split(path, "/")
	var suffix string
	var suffixed bool
	parts[len(parts)-1], suffix, suffixed = strings.Cut(parts[len(parts)-1], ":")
	if !rooted || suffix != b.suffix || suffixed != (b.suffix != "") || len(parts) < len(b.segments) {
		return m, false
	}
	canonical := make([]string, 0, len(parts))
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
		if s.field == nil {
			canonical = append(canonical, s.literal)
			continue
		}
		m.Variables = append(m.Variables, Variable{Field: s.field, Value: value})
		canonical = append(canonical, escape(value, s.rest))
	}
	m.Path = "/" + strings.Join(canonical, "/")
	if b.suffix != "" {
		m.Path += ":" + b.suffix
	}
	return m, true
}

// escape encodes a value as one segment, or with slashes as several, without an unescaped colon.
func escape(value string, slashes bool) string {
	escaped := strings.ReplaceAll(url.PathEscape(value), ":", "%3A")
	if slashes {
		escaped = strings.ReplaceAll(escaped, "%2F", "/")
	}
	return escaped
}
