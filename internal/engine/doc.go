// Package engine is the Temporal side of Signalbox: a client that starts, cancels and repairs runs ([Engine]), and the
// workers that execute them ([Workers]). Temporal is the only engine.
//
// Package contract defines the names in Temporal, package flow the interpreter's workflow, and package projection the
// updates of rows.
package engine
