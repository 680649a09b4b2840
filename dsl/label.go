package dsl

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/dsl/label"
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
// quote values of the input. [label.Value] checks the result.
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
	if n := len(v.node.Members); n > label.MaxCount {
		p.report(CodeLimit, v, "", "the document has %d labels, more than the %d that a run can have", n, label.MaxCount)
		return nil
	}
	var list []Label
	for _, m := range v.node.Members {
		list = append(list, p.label(m.Key, v.child(m)))
	}
	return list
}

func (p *parser) label(key string, v value) Label {
	if violation := label.KeyViolation(key); violation != "" {
		p.report(CodeValue, v, "", "the key of the label %q %s", key, violation)
	}
	if p.is(v, tree.String, fmt.Sprintf("the label %q", key)) && !p.isExpression(v, labelVariables()) {
		if violation := label.ValueViolation(v.node.Text); violation != "" {
			p.report(CodeValue, v, "", "the value of the label %q %s", key, violation)
		}
	}
	return Label{Key: key, value: p.template(v, labelVariables())}
}

func labelVariables() []string { return []string{"input"} }
