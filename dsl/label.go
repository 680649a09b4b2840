package dsl

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// LabelsKey is the key of document.metadata with the labels of the document's runs: an object with a text or an
// expression for each key of a label.
const LabelsKey = "labels"

// Label is a label of all runs of a document.
type Label struct {
	Key   string
	value *Template
}

// Eval evaluates the label's value for a run with this input, which expressions use as . and as $input. The error may
// quote values of the input. [LabelValue] checks the result.
func (l Label) Eval(input any, fuel *jq.Fuel) (any, error) {
	return l.value.Eval(input, map[string]any{"input": input}, fuel)
}

// Path returns the names of a value that is a plain path into the input, such as .order.id; nil for other values.
func (l Label) Path() []string {
	if l.value.expr == nil || !regexp.MustCompile(`^(\.[A-Za-z_][A-Za-z0-9_]*)+$`).MatchString(l.value.expr.Source) {
		return nil
	}
	return strings.Split(l.value.expr.Source, ".")[1:]
}

// labels reads the labels in the metadata of a document.
func (p *parser) labels(metadata value) []Label {
	v, ok := metadata.member(LabelsKey)
	if !ok {
		return nil
	}
	if !p.is(v, tree.Object, "metadata.labels") {
		return nil
	}
	if n := len(v.node.Members); n > MaxLabels {
		p.report(CodeLimit, v, "", "the document has %d labels, more than the %d that a run can have", n, MaxLabels)
		return nil
	}
	var list []Label
	for _, m := range v.node.Members {
		list = append(list, p.label(m.Key, v.child(m)))
	}
	return list
}

func (p *parser) label(key string, v value) Label {
	if violation := LabelKeyViolation(key); violation != "" {
		p.report(CodeValue, v, "", "the key of the label %q %s", key, violation)
	}
	if p.is(v, tree.String, fmt.Sprintf("the label %q", key)) && !p.isExpression(v, labelVariables()) {
		if violation := LabelValueViolation(v.node.Text); violation != "" {
			p.report(CodeValue, v, "", "the value of the label %q %s", key, violation)
		}
	}
	return Label{Key: key, value: p.template(v, labelVariables())}
}

func labelVariables() []string { return []string{"input"} }

// MaxLabels is the maximum number of labels of a run.
const MaxLabels = 16

// The limits of a label, in bytes.
const (
	maxLabelKey   = 63
	maxLabelValue = 256
)

const labelKeyCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/"

// LabelKeyViolation returns what is wrong with the key of a label; empty if it is valid.
func LabelKeyViolation(key string) string {
	switch {
	case key == "":
		return "is empty"
	case len(key) > maxLabelKey:
		return fmt.Sprintf("has %d characters, more than %d", len(key), maxLabelKey)
	case strings.ContainsFunc(key, func(r rune) bool { return !strings.ContainsRune(labelKeyCharacters, r) }):
		return "has other characters than letters, digits and . _ - /"
	}
	return ""
}

// LabelValueViolation returns what is wrong with the value of a label, without quoting it; empty if it is valid.
func LabelValueViolation(value string) string {
	switch {
	case value == "":
		return "is empty"
	case len(value) > maxLabelValue:
		return fmt.Sprintf("has %d bytes, more than %d", len(value), maxLabelValue)
	case !utf8.ValidString(value):
		return "is not UTF-8"
	}
	for _, r := range value {
		if !unicode.IsPrint(r) {
			return fmt.Sprintf("has the character %U, which is not printable", r)
		}
	}
	return ""
}

// LabelValue converts the result of an expression to the value of a label: a text, a number with all its digits, or a
// boolean. For null and for an empty text the run has no such label, and the value is empty. Otherwise violation states
// what is wrong with the result, without quoting it.
func LabelValue(result any) (value, violation string) {
	switch v := result.(type) {
	case nil:
		return "", ""
	case string:
		if v == "" {
			return "", ""
		}
		return v, LabelValueViolation(v)
	case bool, int, float64, *big.Int:
		text, err := jq.EncodeJSON(v)
		if err != nil {
			return "", "has no JSON form"
		}
		return string(text), LabelValueViolation(string(text))
	}
	return "", fmt.Sprintf("is %s instead of a text, a number or a boolean", jq.TypeName(result))
}
