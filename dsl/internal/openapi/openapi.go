// Package openapi reads descriptions of HTTP services in the formats OpenAPI 3.0, 3.1 and Swagger 2.0, and makes
// requests to the operations that they describe.
//
//	description, err := openapi.Read(value, "https://example.com/openapi.json", load)
//	operation, err := description.Operation("getPet")
//	request, units, err := operation.Request(map[string]any{"petId": 1}, budget)
//
// An operation holds all that a request needs, so that the same arguments make the same request at any time. Nothing is
// read from the network or a disk: load provides the texts that a description refers to. Schemas are given as JSON
// Schemas; the caller compiles them and sets [Schema.Check].
//
// The package knows nothing of authentication, except the parameters of API keys, which are arguments like others.
package openapi

import (
	"fmt"
	"slices"
	"strings"
)

// Location is the part of a request that carries a parameter.
type Location string

// The locations of parameters.
const (
	InPath   Location = "path"
	InQuery  Location = "query"
	InHeader Location = "header"
	InCookie Location = "cookie"
)

// Operation is an operation of a service.
type Operation struct {
	ID     string
	Method string // upper case
	Path   string // template, as the description has it

	// Parameters are sorted by name and location.
	Parameters []*Parameter
	Body       *Body // nil: the operation has none
	// Security lists the alternatives to authenticate; empty: none is needed.
	Security []Requirement
	// Notes are parts of the description that requests are not checked against, with the reason.
	Notes []string
	// Values is the number of values that the description of the operation has.
	Values int

	server server
}

// Requirement is a way to authenticate: all of the schemes.
type Requirement []Scheme

// Scheme is a security scheme of a description. Parameter is the name of the parameter that carries an API key.
type Scheme struct{ Name, Type, HTTP, Parameter string }

// Parameter is a parameter of an operation.
type Parameter struct {
	Name     string
	In       Location
	Required bool
	Schema   *Schema // nil: any value

	style    string
	explode  bool
	reserved bool   // reserved characters are not encoded
	media    string // of a value that is sent as JSON; empty: by style
	shape    *shape
}

// Body is the body of the requests of an operation.
type Body struct {
	// Name is that of the argument with the whole body. It is empty if the body has a member of that name: then its
	// members are the arguments.
	Name     string
	Required bool
	Media    string // the type in which it is sent
	Schema   *Schema

	members    bool     // arguments that name no parameter are members of the body
	properties []string // of an object, sorted
	required   []string // those that a request must have, sorted
	separators map[string]string
}

// Schema describes a value.
type Schema struct {
	// Definition is a JSON Schema (draft 2020-12) as JSON, which refers to nothing outside.
	Definition []byte
	// Check validates a value within a budget, and returns the units that it has used; nil: every value is valid.
	Check func(v any, budget int64) (units int64, err error)
}

// BudgetError is the error of [Schema.Check] if the check was not made, because it might have exceeded its budget.
type BudgetError struct{ Err error }

// Error implements error.
func (e *BudgetError) Error() string { return e.Err.Error() }

// Schemas returns the schemas of the operation with what they describe.
func (o *Operation) Schemas(yield func(what string, s *Schema) bool) {
	for _, p := range o.Parameters {
		if p.Schema != nil && !yield(p.String(), p.Schema) {
			return
		}
	}
	if o.Body != nil && o.Body.Schema != nil {
		yield("the body", o.Body.Schema)
	}
}

// String describes a parameter.
func (p *Parameter) String() string { return fmt.Sprintf("the %s parameter %q", p.In, p.Name) }

// Authenticated reports whether one of the alternatives is fulfilled by the authentication of a call, which is of a
// scheme of HTTP such as bearer, or empty, and by arguments.
func (o *Operation) Authenticated(scheme string, given func(argument string) bool) bool {
	if len(o.Security) == 0 {
		return true
	}
	return slices.ContainsFunc(o.Security, func(r Requirement) bool {
		return !slices.ContainsFunc(r, func(s Scheme) bool {
			switch {
			case s.Parameter != "":
				return !given(s.Parameter)
			case s.Type == "http":
				return !strings.EqualFold(s.HTTP, scheme)
			}
			return scheme == ""
		})
	})
}

// SecurityText lists the alternatives to authenticate.
func (o *Operation) SecurityText() string {
	alternatives := make([]string, len(o.Security))
	for i, r := range o.Security {
		names := make([]string, len(r))
		for j, s := range r {
			switch {
			case s.Parameter != "":
				names[j] = fmt.Sprintf("the argument %q", s.Parameter)
			case s.Type == "http":
				names[j] = s.HTTP
			default:
				names[j] = s.Type
			}
		}
		alternatives[i] = strings.Join(names, " and ")
	}
	return strings.Join(alternatives, ", or ")
}

// shape is what the texts of a parameter stand for.
type shape struct {
	types   []string // empty: any
	items   *shape
	members map[string]*shape
}
