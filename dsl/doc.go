// Package dsl is the workflow language: it turns a definition in YAML or JSON into a checked, immutable [Document],
// or into every problem it has, each with its place and what to do about it.
//
// The language is the Open Workflow Specification's DSL 1.0, without a dialect: nothing is added or renamed. This
// version of Signalbox runs a part of it; the rest is recognised and refused with the code "unsupported".
//
//	doc, problems := dsl.Parse(source)
//	if problems.HasErrors() {
//		return problems
//	}
//	key := doc.Hash()
//
// Parsing makes three passes in one go: structure, references, expressions. Expressions ([Expr], [Template],
// [Duration]) are compiled here and evaluated by whoever runs the document, with a budget of compute.
// The package does not run documents (package interp does), knows nothing of Temporal, and never reads a file,
// the network or a clock.
package dsl
