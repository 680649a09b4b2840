package openapi

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/value"
)

// Secret stands for a text with secrets in arguments, and in the texts of a request. It is not compared with a schema.
type Secret struct{ Value any }

// Unknown is an argument whose value is not known before there is a run.
type Unknown struct{}

// Problem is a difference between arguments and the description of their operation.
type Problem struct {
	Argument string // empty: the problem is with what is not given
	Message  string
	// Known are the names of arguments that there are, if there is none of that name.
	Known []string
}

// ProblemsError lists problems by argument.
type ProblemsError struct{ Problems []Problem }

// maxProblems is the number of problems in the text of an error.
const maxProblems = 20

// Error implements error.
func (e *ProblemsError) Error() string {
	texts := make([]string, 0, min(len(e.Problems), maxProblems)+1)
	for i, p := range e.Problems {
		if i == maxProblems {
			texts = append(texts, fmt.Sprintf("and %d more", len(e.Problems)-maxProblems))
			break
		}
		texts = append(texts, p.Message)
	}
	return strings.Join(texts, "; ")
}

// arguments are the arguments of a request by what they are for.
type arguments struct {
	parameters map[*Parameter]any // those that are given
	server     map[string]string
	body       any
	hasBody    bool
	known      bool // the body
	members    map[string]any
}

// check compares arguments, some of which may be Unknown, with the description.
type check struct {
	*Operation
	arguments

	budget, used int64
	problems     []Problem
	err          error
}

// Check returns the problems of arguments, some of which may be Unknown. It has no budget.
func (o *Operation) Check(given map[string]any) []Problem {
	const unbounded = 1 << 40
	c := o.check(given, unbounded)
	if c.err != nil {
		return append(c.problems, Problem{Message: c.err.Error()})
	}
	return c.problems
}

func (o *Operation) check(given map[string]any, budget int64) *check {
	c := &check{Operation: o, budget: budget, arguments: arguments{
		parameters: map[*Parameter]any{}, server: map[string]string{}, members: map[string]any{}, known: true}}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		c.assign(name, given[name])
	}
	for _, p := range o.Parameters {
		v, ok := c.parameters[p]
		switch {
		case !ok && p.Required:
			c.report("", "%s is missing", p)
		case ok:
			c.parameter(p, v)
		}
	}
	c.checkBody()
	return c
}

func (c *check) report(argument, format string, args ...any) {
	c.problems = append(c.problems, Problem{Argument: argument, Message: fmt.Sprintf(format, args...)})
}

// assign determines what an argument is for. A null is no argument.
func (c *check) assign(name string, v any) {
	found := false
	for _, p := range c.Parameters {
		if p.Name == name || p.In == InHeader && strings.EqualFold(p.Name, name) {
			if found = true; v != nil {
				c.parameters[p] = v
			}
		}
	}
	_, isVariable := c.Operation.server.variables[name]
	switch {
	case found:
	case isVariable:
		if _, unknown := v.(Unknown); v == nil || unknown {
			return
		}
		text, err := c.Operation.server.value(name, v)
		if err != nil {
			c.report(name, "the variable %q of the server %v", name, err)
		}
		c.arguments.server[name] = text
	case c.Body != nil && name == c.Body.Name:
		if v != nil {
			c.body, c.hasBody = v, true
		}
	case c.Body != nil && c.Body.members:
		c.members[name] = v
	default:
		c.unknown(name)
	}
}

func (c *check) unknown(name string) {
	known := c.Operation.server.names()
	for _, p := range c.Parameters {
		known = append(known, p.Name)
	}
	if c.Body != nil {
		if known = append(known, c.Body.properties...); c.Body.Name != "" {
			known = append(known, c.Body.Name)
		}
	}
	slices.Sort(known)
	c.problems = append(c.problems, Problem{Argument: name, Known: slices.Compact(known),
		Message: fmt.Sprintf("the operation %.200q has no parameter %.80q", c.ID, name)})
}

// parameter checks the value of a parameter, and replaces it by one of the type that the description has: the texts of
// numbers are numbers, and a single value is a list of one.
func (c *check) parameter(p *Parameter, v any) {
	switch v := v.(type) {
	case Unknown:
		return
	case Secret:
		if p.media != "" {
			c.report(p.Name, "%s is sent as JSON and cannot have a secret in it", p)
		}
		return
	case []any, map[string]any:
		if holdsSecret(v) {
			c.report(p.Name, "%s must be a text where a secret is in it", p)
			return
		}
	}
	if p.media == "" {
		v = p.shape.coerce(v)
		c.parameters[p] = v
	}
	if !c.conforms(p.Name, p.String(), p.Schema, v) {
		return
	}
	if err := p.sendable(v); err != nil {
		c.report(p.Name, "%s %v", p, err)
	}
}

// conforms checks a value against a schema and reports the differences.
func (c *check) conforms(argument, what string, s *Schema, v any) bool {
	if s == nil || s.Check == nil || c.err != nil {
		return c.err == nil
	}
	used, err := s.Check(v, max(c.budget-c.used, 0))
	c.used += used
	_, costly := errors.AsType[*BudgetError](err)
	switch {
	case costly:
		c.err = fmt.Errorf("%s cannot be checked: %w", what, err)
	case err != nil:
		c.report(argument, "%s does not match its schema: %v", what, err)
	}
	return err == nil
}

// checkBody completes the body and checks it.
func (c *check) checkBody() {
	if c.Body == nil {
		return
	}
	names := slices.Sorted(maps.Keys(c.members))
	if len(names) > 0 {
		if c.hasBody {
			for _, name := range names {
				c.unknown(name)
			}
			return
		}
		c.body, c.hasBody = c.members, true
	}
	if !c.hasBody {
		if c.Body.Required {
			c.missingBody()
		}
		return
	}
	argument := ""
	if len(names) == 0 {
		argument = c.Body.Name
	}
	switch {
	case holds(c.body, isUnknown):
		if len(names) > 0 {
			c.missingMembers()
		}
	case holdsSecret(c.body):
	case c.conforms(argument, "the body", c.Body.Schema, c.body):
		if err := c.Body.sendable(c.body); err != nil {
			c.report(argument, "the body %v", err)
		}
	}
}

func (c *check) missingBody() {
	switch {
	case c.Body.members && len(c.Body.properties) > 0:
		c.report("", "the body is missing: its members are arguments (%s)", strings.Join(
			c.Body.properties[:min(len(c.Body.properties), maxProblems)], ", "))
	case c.Body.Name != "":
		c.report("", "the body is missing: it is the argument %q", c.Body.Name)
	default:
		c.report("", "the body is missing")
	}
}

// missingMembers reports missing members of a body with members that are not known yet.
func (c *check) missingMembers() {
	for _, name := range c.Body.required {
		if _, given := c.members[name]; !given {
			c.report("", "the member %q of the body is missing", name)
		}
	}
}

// sendable returns why a valid body cannot be sent in its type.
func (b *Body) sendable(v any) error {
	if _, text := v.(string); text || isJSON(b.Media) {
		return nil
	}
	if mediaType(b.Media) != typeForm {
		return fmt.Errorf("is of the type %s and must be a text, got %s", b.Media, value.TypeName(v))
	}
	object, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("is a form and must be an object, got %s", value.TypeName(v))
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		list, ok := object[name].([]any)
		if !ok {
			list = []any{object[name]}
		}
		for _, item := range list {
			if _, ok := textOf(item); !ok && item != nil {
				return fmt.Errorf("is a form, whose field %.80q must be a text, a number, a boolean or a list of them", name)
			}
		}
	}
	return nil
}

func isUnknown(v any) bool { _, is := v.(Unknown); return is }

func isSecret(v any) bool { _, is := v.(Secret); return is }

func holdsSecret(v any) bool { return holds(v, isSecret) }

// holds reports whether a part of a value is of a kind.
func holds(v any, is func(any) bool) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return holds(item, is) })
	case map[string]any:
		for _, member := range v {
			if holds(member, is) {
				return true
			}
		}
	}
	return is(v)
}

// coerce returns a value in the type that a parameter has, where its text in a request can be of that type.
func (s *shape) coerce(v any) any {
	if s == nil || len(s.types) == 0 || v == nil {
		return v
	}
	has := func(kind string) bool { return slices.Contains(s.types, kind) }
	switch given := v.(type) {
	case []any:
		if !has("array") {
			return v
		}
		out := make([]any, len(given))
		for i, item := range given {
			out[i] = s.items.coerce(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(given))
		for name, member := range given {
			out[name] = s.members[name].coerce(member)
		}
		return out
	case string:
		if has("string") {
			return v
		}
		if decoded, err := value.Decode([]byte(given)); err == nil && len(given) < maxNumber {
			switch decoded.(type) {
			case bool:
				if has("boolean") {
					return decoded
				}
			case []any, map[string]any, string, nil:
			default:
				if has("integer") || has("number") {
					return decoded
				}
			}
		}
	default:
		if _, boolean := v.(bool); boolean && has("boolean") || !boolean && (has("integer") || has("number")) {
			return v
		}
		if text, ok := textOf(v); ok && has("string") {
			return text
		}
	}
	if has("array") {
		return []any{s.items.coerce(v)}
	}
	return v
}

// maxNumber is the length of the longest text that is read as a number.
const maxNumber = 40
