package dsl

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/signalbox-dev/signalbox/dsl/internal/schemacost"
	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
	data "github.com/signalbox-dev/signalbox/dsl/internal/value" // value is a type here
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// Schema is a compiled JSON Schema (draft 2020-12 unless its $schema selects another). Nothing is loaded from the
// network or a disk: a reference out of the document is an error when the schema is compiled.
type Schema struct {
	// Source reads the schema where only a run knows its address: it is read when it is used, and nothing else is set. It
	// is nil for a schema that can be checked.
	Source *HTTPCall
	// Origin names the text that [ReadSchema] has compiled; it is empty for a schema of a document.
	Origin string

	Definition any    // the schema as a plain JSON value; must not be changed
	JSON       []byte // the schema as JSON, with the members in the order of the document; must not be changed
	compiled   *jsonschema.Schema
	formats    func() *jsonschema.Schema // the same, and texts must be of their formats; nil if the schema names none
	costs      *schemacost.Graph
}

// SchemaViolation is one part of a value that does not match its schema.
type SchemaViolation struct {
	Pointer string   // JSON pointer in the value; "" is the value
	Message string   // may quote the value
	Keyword string   // the part of the schema that is violated, such as "pattern" or "dependentRequired/a"
	Missing []string // the properties that the value at Pointer lacks; they are named by the schema, not by the value
}

// MissingAt returns the JSON pointers at which the properties in Missing belong.
func (v SchemaViolation) MissingAt() []string {
	pointers := make([]string, len(v.Missing))
	for i, name := range v.Missing {
		pointers[i] = v.Pointer + "/" + tree.Escape(name)
	}
	return pointers
}

// SchemaError lists every violation, sorted by pointer.
type SchemaError struct{ Violations []SchemaViolation }

// Error implements error.
func (e *SchemaError) Error() string {
	lines := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		lines[i] = fmt.Sprintf("%q: %s", v.Pointer, v.Message)
	}
	return strings.Join(lines, "; ")
}

// Text returns the violations like Error, but names no pointer where it is that of the whole value.
func (e *SchemaError) Text() string {
	lines := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		if lines[i] = v.Message; v.Pointer != "" {
			lines[i] = fmt.Sprintf("%q: %s", v.Pointer, v.Message)
		}
	}
	return strings.Join(lines, "; ")
}

// Late reports whether only a run knows where the schema is.
func (s *Schema) Late() bool { return s != nil && s.Source != nil }

// MaxLateSchemaBytes is the size of the largest schema that is read during a run.
const MaxLateSchemaBytes = 256 << 10

// ReadSchema compiles the text of a schema in JSON or YAML that was read during a run. The limits are those of all schemas
// of one document, with [MaxLateSchemaBytes].
func ReadSchema(uri string, text []byte) (*Schema, error) {
	p := &parser{limits: DefaultLimits()}
	if len(text) > MaxLateSchemaBytes {
		return nil, fmt.Errorf("it has %d bytes, the limit is %d", len(text), MaxLateSchemaBytes)
	}
	root, found := tree.Parse(text, tree.Limits{
		Bytes: MaxLateSchemaBytes, Depth: p.limits.MaxDepth, Aliases: p.limits.MaxAliases, Nodes: p.limits.MaxSchemaValues,
	})
	for _, f := range found {
		if f.Kind != tree.TrailingComma {
			return nil, fmt.Errorf("%d:%d: %s", f.Pos.Line, f.Pos.Column, f.Message)
		}
	}
	if root == nil {
		return nil, errors.New("it is empty")
	}
	if compiled := p.compileSchema(value{node: root}, value{node: root}); compiled != nil {
		compiled.Origin = uri + " (" + ContentHash(text) + ")"
		return compiled, nil
	}
	return nil, errors.New(p.violations[0].Message)
}

// compileSchema compiles a value of a document as a schema.
func compileSchema(node *tree.Node) (*Schema, error) {
	definition := node.Value()
	compiled, err := compileDefinition(definition, func(*jsonschema.Compiler) {})
	if invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		err = schemaViolations(invalid.Err, MaxSchemaViolations)
	}
	if err != nil {
		return nil, err
	}
	text, err := appendJSON(nil, node)
	if err != nil {
		return nil, err
	}
	s := &Schema{Definition: definition, JSON: text, compiled: compiled, costs: schemacost.New(compiled, jq.PatternWeight)}
	if bytes.Contains(text, []byte(`"format"`)) {
		s.formats = sync.OnceValue(func() *jsonschema.Schema {
			strict, _ := compileDefinition(definition, (*jsonschema.Compiler).AssertFormat) // it compiled above
			return strict
		})
	}
	return s, nil
}

func compileDefinition(definition any, configure func(*jsonschema.Compiler)) (*jsonschema.Schema, error) {
	const location = "urn:schema" // not a file name, which the library would resolve in the working directory
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	configure(c)
	if err := c.AddResource(location, forSchema(definition)); err != nil {
		return nil, err
	}
	return c.Compile(location)
}

// appendJSON appends a value as compact JSON, with the members in the order of the source.
func appendJSON(b []byte, node *tree.Node) ([]byte, error) {
	var err error
	switch node.Kind {
	case tree.Array:
		b = append(b, '[')
		for i, item := range node.Items {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendJSON(b, item); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case tree.Object:
		b = append(b, '{')
		for i, member := range node.Members {
			if i > 0 {
				b = append(b, ',')
			}
			name, err := jq.EncodeJSON(member.Key)
			if err != nil {
				return nil, err
			}
			if b, err = appendJSON(append(append(b, name...), ':'), member.Value); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	}
	scalar, err := jq.EncodeJSON(node.Scalar)
	return append(b, scalar...), err
}

// noLoader prevents schemas from loading anything outside the document.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is outside the document and is not loaded", url)
}

// MaxSchemaViolations is the maximum number of violations in the error of [Schema.Check].
const MaxSchemaViolations = 100

// CheckCostError is the error of a check that was not started, because it might have exceeded its budget.
type CheckCostError struct{ Budget int64 }

// Error implements error.
func (e *CheckCostError) Error() string {
	return fmt.Sprintf("a check against the schema may take more than %d units of compute, which is what there is for "+
		"it: "+
		"make the value smaller, or the schema simpler where it refers to itself or lists alternatives", e.Budget)
}

// Check validates a value within a budget, in the units of [jq.Fuel], and returns the units used. A check that may
// exceed the budget is refused before it starts. The same value uses the same units on every machine. The error is a
// *SchemaError with the first MaxSchemaViolations, or a *CheckCostError.
func (s *Schema) Check(v any, budget int64) (units int64, err error) {
	cost := s.costs.Cost(v, max(budget, 0))
	if cost > budget {
		return max(budget, 0), &CheckCostError{Budget: max(budget, 0)}
	}
	if err := s.compiled.Validate(forSchema(v)); err != nil {
		return cost, schemaViolations(err, MaxSchemaViolations)
	}
	return cost, nil
}

// Formats returns the texts of a valid value that are not of the formats that the schema names, with messages that
// quote nothing of the value. JSON Schema leaves it to each program whether formats are required, and [Schema.Check]
// does not require them. It finds nothing where the check may exceed the budget.
func (s *Schema) Formats(v any, budget int64) []SchemaViolation {
	if s.formats == nil || s.costs.Cost(v, budget) > budget {
		return nil
	}
	var ve *jsonschema.ValidationError
	if strict := s.formats(); strict == nil || !errors.As(strict.Validate(forSchema(v)), &ve) {
		return nil
	}
	var found []SchemaViolation
	var collect func(*jsonschema.ValidationError)
	collect = func(ve *jsonschema.ValidationError) {
		if k, is := ve.ErrorKind.(*kind.Format); is && len(found) < MaxSchemaViolations {
			found = append(found, SchemaViolation{
				Pointer: pointer(ve.InstanceLocation...), Message: fmt.Sprintf("is not of the format %q", k.Want),
				Keyword: "format"})
		}
		for _, cause := range ve.Causes {
			collect(cause)
		}
	}
	collect(ve)
	return unique(found)
}

// Validate validates a value without a budget. The error is a *SchemaError with every violation. It serves runs that
// began before there were budgets; others use [Schema.Check].
func (s *Schema) Validate(v any) error {
	if err := s.compiled.Validate(forSchema(v)); err != nil {
		return schemaViolations(err, 0)
	}
	return nil
}

// schemaViolations returns the violations of an error, at most limit of them unless limit is zero.
func schemaViolations(err error, limit int) error {
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return fmt.Errorf("validate against the schema: %w", err)
	}
	c := &collector{limit: limit, printer: message.NewPrinter(language.English)}
	c.collect(ve)
	if limit > 0 {
		c.found = unique(c.found)
		return &SchemaError{Violations: c.found[:min(len(c.found), limit)]}
	}
	slices.SortStableFunc(c.found, compareViolations)
	return &SchemaError{Violations: slices.CompactFunc(c.found, equalViolations)}
}

func compareViolations(a, b SchemaViolation) int {
	return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Message, b.Message))
}

// unique sorts violations and removes duplicates.
func unique(all []SchemaViolation) []SchemaViolation {
	slices.SortFunc(all, func(a, b SchemaViolation) int {
		return cmp.Or(compareViolations(a, b), cmp.Compare(a.Keyword, b.Keyword))
	})
	return slices.CompactFunc(all, equalViolations)
}

// equalViolations ignores Missing, which follows from the message.
func equalViolations(a, b SchemaViolation) bool {
	return compareViolations(a, b) == 0 && a.Keyword == b.Keyword
}

// collector collects the innermost causes of an error, which are the ones that an author can correct.
type collector struct {
	limit   int // 0: none
	printer *message.Printer
	found   []SchemaViolation
	last    string // with a limit: violations sorted after this one are not among the first
}

func (c *collector) collect(ve *jsonschema.ValidationError) {
	for _, cause := range ve.Causes {
		c.collect(cause)
	}
	if _, whole := ve.ErrorKind.(*kind.Schema); whole || len(ve.Causes) > 0 {
		return
	}
	at := pointer(ve.InstanceLocation...)
	if c.last != "" && at > c.last {
		return
	}
	c.normalize(ve.ErrorKind)
	c.found = append(c.found, SchemaViolation{
		Pointer: at, Message: ve.ErrorKind.LocalizedString(c.printer), Keyword: strings.Join(ve.ErrorKind.KeywordPath(), "/"),
		Missing: missing(ve.ErrorKind),
	})
	if c.limit > 0 && len(c.found) >= 4*c.limit {
		if c.found = unique(c.found); len(c.found) >= c.limit {
			c.found = c.found[:c.limit]
			c.last = c.found[c.limit-1].Pointer
		}
	}
}

func missing(of jsonschema.ErrorKind) []string {
	switch k := of.(type) {
	case *kind.Required:
		return k.Missing
	case *kind.DependentRequired:
		return k.Missing
	case *kind.Dependency:
		return k.Missing
	}
	return nil
}

// normalize makes the text of an error deterministic, and short if there is a limit.
func (c *collector) normalize(of jsonschema.ErrorKind) {
	if additional, ok := of.(*kind.AdditionalProperties); ok {
		slices.Sort(additional.Properties) // the library returns them in the order of a map
	}
	if c.limit == 0 {
		return
	}
	switch k := of.(type) {
	case *kind.AdditionalProperties:
		k.Properties = k.Properties[:min(len(k.Properties), c.limit)]
		for i, name := range k.Properties {
			k.Properties[i] = shorten(name)
		}
	case *kind.Pattern:
		k.Got = shorten(k.Got)
	case *kind.PropertyNames:
		k.Property = shorten(k.Property)
	case *kind.Format:
		if s, ok := k.Got.(string); ok {
			k.Got = shorten(s)
		}
	}
}

func shorten(s string) string {
	const longest = 1 << 10
	if len(s) <= longest {
		return s
	}
	return strings.ToValidUTF8(s[:longest], "") + "…"
}

// forSchema converts big integers into the form that the schema library accepts for numbers of any size.
func forSchema(v any) any {
	return data.Replace(v, func(leaf any) any {
		if n, is := leaf.(*big.Int); is {
			return json.Number(n.String())
		}
		return leaf
	})
}

// pointer joins names to a JSON pointer (RFC 6901).
func pointer(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(tree.Escape(p))
	}
	return b.String()
}
