// Package dsl is the workflow language: it turns a definition in YAML or JSON into a checked, immutable [Document], or
// returns every violation it has, each with its position and a suggestion.
//
// The language is the Open Workflow Specification's DSL 1.0, without a dialect: nothing is added or renamed. This
// version of Signalbox runs a part of it; the rest is recognised and refused with the code "unsupported".
//
//	doc, violations := dsl.Parse(source)
//	if violations.HasErrors() {
//		return violations
//	}
//	key := doc.Hash()
//
// Parse checks structure, references and expressions in one pass and reports the violations of all three together.
// Expressions ([Expr], [Template], [Duration]) are compiled here and evaluated by the package that runs the document,
// within a budget of compute. This package does not run documents (package interp does), does not depend on Temporal,
// and never reads a file, the network or a clock.
package dsl
