// Package tree reads YAML 1.2 or JSON into a tree in which every value and key has its position in the source.
//
// It exists because the decoders of YAML libraries lose what a language needs for good messages (positions, duplicate
// keys) and, following YAML 1.1, turn words such as on, yes and no into booleans. This package resolves scalars by the
// core schema of YAML 1.2; a value that JSON cannot represent is a violation. Aliases and merge keys are expanded
// within limits, so that a small text cannot become a huge tree.
//
// YAML is parsed by go.yaml.in/yaml/v3. goccy/go-yaml would give better messages but needs quadratic time on nested
// brackets and accepts invalid UTF-8, control characters and unknown anchors. It serves only to locate the error in a
// text that the first parser refused.
//
// The package is independent of the workflow language.
package tree

import (
	"math/big"
	"strconv"
)

// Pos is a position in the source; both numbers count from 1, columns in characters.
type Pos struct{ Line, Column int }

// Kind is the JSON type of a value.
type Kind int

// The kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// String returns the kind as messages show it, such as "a boolean".
func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// Node is one value.
type Node struct {
	Kind    Kind
	Scalar  any // nil, bool, int, *big.Int, float64 or string
	Text    string
	Items   []*Node
	Members []Member // in the order of the source
	Pos     Pos

	plain any // what Value returned before
}

// Member is one key of an object with its value.
type Member struct {
	Key   string
	Pos   Pos
	Value *Node
}

// Get returns the value of a key, nil if there is none.
func (n *Node) Get(key string) *Node {
	for _, m := range n.Members {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

// Value returns the node as a plain JSON value, which must not be changed: the values of its parts are the same as
// their own. It is not safe for concurrent use.
func (n *Node) Value() any {
	if n.plain != nil {
		return n.plain
	}
	switch n.Kind {
	case Array:
		out := make([]any, len(n.Items))
		for i, e := range n.Items {
			out[i] = e.Value()
		}
		n.plain = out
	case Object:
		out := make(map[string]any, len(n.Members))
		for _, m := range n.Members {
			out[m.Key] = m.Value.Value()
		}
		n.plain = out
	default:
		return n.Scalar
	}
	return n.plain
}

// ViolationKind classifies a violation.
type ViolationKind int

// The kinds of violations.
const (
	Syntax ViolationKind = iota
	Limit
	DuplicateKey
	NotJSON       // a value or key that JSON cannot represent
	TrailingComma // JSON except for a comma that YAML allows: the meaning is unambiguous
)

// Violation is one defect of a text. Pointer is the JSON pointer of the value concerned.
type Violation struct {
	Kind       ViolationKind
	Pos        Pos
	Pointer    string
	Message    string
	Suggestion string
}

// Limits limits the size of a document. Zero values refuse everything.
type Limits struct {
	Bytes   int
	Depth   int
	Aliases int // uses of anchors
	Nodes   int // values after aliases are expanded
}

// Parse reads one document. The tree is nil if a violation prevents further checks. Duplicate keys and values that are
// not JSON leave a tree (with the first value, or null), and so does a trailing comma.
func Parse(source []byte, limits Limits) (*Node, []Violation) {
	if len(source) > limits.Bytes {
		return nil, []Violation{{
			Kind: Limit, Message: "the document has " + strconv.Itoa(len(source)) + " bytes, over the limit of " +
				strconv.Itoa(limits.Bytes)}}
	}
	if n, violations, ok := parseJSON(source, limits); ok {
		return n, violations
	}
	n, violations := parseYAML(source, limits)
	if n != nil {
		violations = append(violations, trailingComma(source)...)
	}
	return n, violations
}

const maxDigits = 1024

// integer reads digits of any length up to a limit into an int or a *big.Int.
func integer(digits string, base int) (any, bool) {
	if len(digits) > maxDigits {
		return nil, false
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return nil, false
	}
	if n.IsInt64() {
		return int(n.Int64()), true
	}
	return n, true
}
