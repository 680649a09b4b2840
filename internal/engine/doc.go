// Package engine is Signalbox's side of Temporal: a client that starts, cancels and repairs runs ([Engine]), and the
// workers that execute them ([Workers]). Temporal is the only engine there is.
//
// Names are in package contract, the interpreter's workflow in package flow, what becomes of rows in package
// projection.
package engine
