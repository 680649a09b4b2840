package dsl

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schema is a compiled JSON Schema (draft 2020-12 unless its $schema says otherwise). Nothing is ever loaded from
// the network or a disk: a reference out of the document is an error when it is compiled.
type Schema struct {
	Definition any // the schema as a plain JSON value; must not be changed
	compiled   *jsonschema.Schema
}

// Violation is one place where a value does not match its schema.
type Violation struct {
	Pointer string // JSON pointer in the value; "" is the value
	Message string // may quote the value
	Keyword string // what of the schema it does not meet, such as "pattern" or "dependentRequired/a"
}

// SchemaError lists every violation, in the order of their pointers.
type SchemaError struct{ Violations []Violation }

// Error implements error.
func (e *SchemaError) Error() string {
	lines := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		lines[i] = fmt.Sprintf("%q: %s", v.Pointer, v.Message)
	}
	return strings.Join(lines, "; ")
}

// compileSchema compiles a plain JSON value as a schema.
func compileSchema(definition any) (*Schema, error) {
	const location = "urn:schema" // not a file name, which the library would resolve in the working directory
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if err := c.AddResource(location, forSchema(definition)); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(location)
	if invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		err = violations(invalid.Err)
	}
	if err != nil {
		return nil, err
	}
	return &Schema{Definition: definition, compiled: compiled}, nil
}

// noLoader keeps schemas from reaching for anything outside the document.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is outside the document and is not loaded", url)
}

// Validate checks a value. The error is a *SchemaError that names every violation.
func (s *Schema) Validate(v any) error {
	if err := s.compiled.Validate(forSchema(v)); err != nil {
		return violations(err)
	}
	return nil
}

func violations(err error) error {
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return fmt.Errorf("validate against the schema: %w", err)
	}
	out := &SchemaError{}
	collect(ve, message.NewPrinter(language.English), out)
	slices.SortStableFunc(out.Violations, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Message, b.Message))
	})
	out.Violations = slices.Compact(out.Violations)
	return out
}

// collect takes the innermost causes, which are the ones a person can act on.
func collect(ve *jsonschema.ValidationError, p *message.Printer, out *SchemaError) {
	if len(ve.Causes) == 0 {
		if _, ok := ve.ErrorKind.(*kind.Schema); !ok {
			out.Violations = append(out.Violations, Violation{
				Pointer: pointer(ve.InstanceLocation...), Message: ve.ErrorKind.LocalizedString(p),
				Keyword: strings.Join(ve.ErrorKind.KeywordPath(), "/"),
			})
		}
		return
	}
	for _, c := range ve.Causes {
		collect(c, p, out)
	}
}

// forSchema turns big integers into the form the schema library takes for numbers of any size.
func forSchema(v any) any {
	switch v := v.(type) {
	case *big.Int:
		return json.Number(v.String())
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = forSchema(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = forSchema(e)
		}
		return out
	}
	return v
}

// pointer makes a JSON pointer (RFC 6901) of the names of its parts.
func pointer(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(p))
	}
	return b.String()
}
