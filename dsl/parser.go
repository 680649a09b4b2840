package dsl

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/openapi"
	"github.com/signalbox-dev/signalbox/dsl/internal/suggest"
	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// Limits limits the size of a document.
type Limits struct {
	MaxBytes      int // size of the source
	MaxDepth      int // nesting of values
	MaxAliases    int // uses of YAML anchors
	MaxNodes      int // values once aliases are expanded
	MaxViolations int // violations reported; further ones are counted, up to maxUnshown

	MaxTasks        int // tasks, those of inner lists included
	MaxTerms        int // size of all expressions together, see [jq.NewLimitedCompiler]
	MaxSchemaValues int // values of all schemas together
}

// DefaultLimits returns the limits that apply without [WithLimits].
func DefaultLimits() Limits {
	return Limits{
		MaxBytes: 1 << 20, MaxDepth: 200, MaxAliases: 1000, MaxNodes: 250_000, MaxViolations: 500,
		MaxTasks: 10_000, MaxTerms: 250_000, MaxSchemaValues: 10_000,
	}
}

// Option configures Parse.
type Option func(*parser)

// WithLimits replaces the default limits.
func WithLimits(l Limits) Option { return func(p *parser) { p.limits = l } }

// Parse reads and checks a definition in YAML or JSON. It returns all violations, sorted by position, without
// duplicates. The document is nil if one of them is an error; warnings do not prevent it.
func Parse(source []byte, opts ...Option) (*Document, Violations) {
	p := &parser{limits: DefaultLimits(), secrets: map[string]bool{}, kinds: map[Kind]bool{}}
	for _, o := range opts {
		o(p)
	}
	p.jq = jq.NewLimitedCompiler(p.limits.MaxTerms)
	root, found := tree.Parse(source, tree.Limits{
		Bytes: p.limits.MaxBytes, Depth: p.limits.MaxDepth, Aliases: p.limits.MaxAliases, Nodes: p.limits.MaxNodes,
	})
	for _, f := range found {
		p.addTreeViolation(f)
	}
	var doc *Document
	if root != nil {
		p.lines = splitLines(source)
		if p.admit(value{node: root}) {
			doc = p.document(value{node: root})
		}
	}
	violations := p.violations.sorted()
	if violations.HasErrors() {
		doc = nil
	}
	return doc, limitViolations(violations, p.limits.MaxViolations)
}

func splitLines(source []byte) [][]byte { return bytes.Split(source, []byte("\n")) }

func limitViolations(ps Violations, limit int) Violations {
	if len(ps) <= limit {
		return ps
	}
	return append(ps[:limit:limit], Violation{
		Severity: SeverityError, Code: CodeLimit,
		Message: fmt.Sprintf("%d more violations are not shown", len(ps)-limit), Suggestion: "fix these first",
	})
}

// maxUnshown is the number of errors over the limit of violations at which a document is not checked further. The
// search for suggestions takes time for each of them.
const maxUnshown = 500

// parser collects violations while it turns a tree into a document.
type parser struct {
	bounds
	limits         Limits
	jq             *jq.Compiler
	lines          [][]byte
	violations     Violations
	errorCount     int // number of violations that are errors
	loose          bool
	use            map[string]map[string]*reusable // by section of use, then by name
	base           Reference                       // the text that is parsed; zero: a document, whose folder has the files
	anySecret      bool                            // secrets need no declaration
	resources      *Resources
	used           map[string]*Resource          // the resources of the document, by URI
	partial        bool                          // resources were postponed
	trees          map[string]*tree.Node         // those that were parsed
	descriptions   map[string]*description       // those of services that were read, by URI
	operations     map[string]*openapi.Operation // those that were read, by URI and identifier
	origins        []origin                      // the functions around what is read now, outermost first
	errors         errorTypes
	declared       []DeclaredSecret
	secrets        map[string]bool // the declared ones, and whether they are used
	secretsAllowed bool            // the value that is read now may refer to secrets
	inExtension    bool            // the tasks that are read now are those of an extension
	kinds          map[Kind]bool   // of the tasks outside extensions
	programs       []UsedProgram
}

// value is a node together with its JSON pointer. A node cannot hold its pointer, because an alias gives it several.
type value struct {
	node *tree.Node
	path string
	key  Pos // of the key that leads to the value
}

func (v value) pos() Pos { return Pos(v.node.Pos) }

func (v value) member(key string) (value, bool) {
	for _, m := range v.node.Members {
		if m.Key == key {
			return v.child(m), true
		}
	}
	return value{}, false
}

func (v value) child(m tree.Member) value {
	return value{m.Value, v.path + pointer(m.Key), Pos(m.Pos)}
}

func (v value) item(i int) value {
	return value{node: v.node.Items[i], path: fmt.Sprintf("%s/%d", v.path, i)}
}

func (p *parser) addTreeViolation(f tree.Violation) {
	codes := map[tree.ViolationKind]Code{
		tree.Syntax: CodeSyntax, tree.Limit: CodeLimit, tree.DuplicateKey: CodeDuplicateKey, tree.NotJSON: CodeType,
		tree.TrailingComma: CodeTrailingComma,
	}
	severity := SeverityError
	if f.Kind == tree.TrailingComma {
		severity = SeverityWarning
	}
	p.add(Violation{
		Severity: severity, Code: codes[f.Kind], Path: f.Pointer, Pos: Pos(f.Pos), Message: f.Message,
		Suggestion: f.Suggestion,
	})
}

// add records a violation, as an error unless it has another severity.
func (p *parser) add(violation Violation) {
	if p.stopped {
		return
	}
	if violation.Severity == "" {
		violation.Severity = SeverityError
	}
	violation = p.located(violation)
	if violation.Severity == SeverityError {
		p.errorCount++
	}
	p.violations = append(p.violations, violation)
	p.stopped = p.errorCount > p.limits.MaxViolations+maxUnshown
}

func (p *parser) report(code Code, v value, suggestion, format string, args ...any) {
	p.add(Violation{Code: code, Path: v.path, Pos: v.pos(), Message: fmt.Sprintf(format, args...), Suggestion: suggestion})
}

// warn reports something that is legal but certainly a mistake, at a position that may be within the value.
func (p *parser) warn(code Code, v value, at Pos, suggestion, format string, args ...any) {
	if at.Line == 0 {
		at = v.pos()
	}
	p.add(Violation{
		Severity: SeverityWarning, Code: code, Path: v.path, Pos: at, Message: fmt.Sprintf(format, args...),
		Suggestion: suggestion,
	})
}

func (p *parser) unsupported(v value, what string) {
	at := v.key
	if at.Line == 0 {
		at = v.pos()
	}
	p.add(Violation{
		Code: CodeUnsupported, Path: v.path, Pos: at, Suggestion: "remove it, or run the document with an engine that has it",
		Message: what + " is in the language, but this version of Signalbox does not run it yet",
	})
}

// is reports whether a value has a kind, and records a violation if not.
func (p *parser) is(v value, kind tree.Kind, what string) bool {
	if v.node.Kind == kind {
		return true
	}
	suggestion := ""
	switch {
	case kind == tree.String && (v.node.Kind == tree.Number || v.node.Kind == tree.Bool):
		suggestion = fmt.Sprintf("quote it: %q", v.node.Text)
	case kind == tree.Bool && v.node.Kind == tree.String:
		suggestion = "write true or false, without quotes"
	case kind == tree.Number && v.node.Kind == tree.String:
		suggestion = "write the number without quotes"
	case v.node.Kind == tree.Null:
		suggestion = "give it a value or remove the key"
	}
	p.report(CodeType, v, suggestion, "%s must be %s, got %s", what, kind, v.node.Kind)
	return false
}

func (p *parser) text(v value, what string) string {
	if !p.is(v, tree.String, what) {
		return ""
	}
	return v.node.Text
}

func (p *parser) boolean(v value, what string) bool {
	return p.is(v, tree.Bool, what) && v.node.Scalar == true
}

func (p *parser) integer(v value, what string) int {
	if !p.is(v, tree.Number, what) {
		return 0
	}
	switch n := v.node.Scalar.(type) {
	case int:
		return n
	case float64:
		if n == float64(int(n)) {
			return int(n)
		}
	}
	p.report(CodeType, v, "", "%s must be an integer, got %s", what, v.node.Text)
	return 0
}

func (p *parser) oneOf(v value, what string, allowed ...string) string {
	s := p.text(v, what)
	if v.node.Kind == tree.String && !slices.Contains(allowed, s) {
		p.report(CodeValue, v, suggest.Closest(s, allowed), "%s must be one of %s, got %q", what, strings.Join(allowed, ", "),
			s)
	}
	return s
}

// fields defines how to read one object: the keys it may have. Their order matters only to messages.
type fields []field

// field is one key of an object: whether it is required, and its reader. A key without a reader is in the language, but
// this version does not run it.
type field struct {
	key      string
	required bool
	read     func(value)
}

// object reads an object by its fields and reports keys that are missing, unknown or not run by this version.
func (p *parser) object(v value, what string, fs fields) bool {
	if !p.is(v, tree.Object, what) {
		return false
	}
	for _, f := range fs {
		member, ok := v.member(f.key)
		switch {
		case !ok && f.required:
			p.report(CodeMissingKey, v, "", "%s needs the key %q", what, f.key)
		case !ok:
		case f.read == nil:
			p.unsupported(member, fmt.Sprintf("the key %q of %s", f.key, what))
		default:
			f.read(member)
		}
	}
	p.unknownKeys(v, what, fs.keys())
	return true
}

func (fs fields) keys() []string {
	keys := make([]string, len(fs))
	for i, f := range fs {
		keys[i] = f.key
	}
	return keys
}

func (p *parser) unknownKeys(v value, what string, known []string) {
	for _, m := range v.node.Members {
		if !slices.Contains(known, m.Key) {
			p.add(Violation{
				Code: CodeUnknownKey, Path: v.path + pointer(m.Key), Pos: Pos(m.Pos),
				Message: fmt.Sprintf("%s has no key %q", what, m.Key), Suggestion: suggest.Name(m.Key, known),
			})
		}
	}
}

func (p *parser) plainObject(v value, what string) map[string]any {
	if !p.is(v, tree.Object, what) {
		return nil
	}
	m, _ := v.node.Value().(map[string]any)
	return m
}
