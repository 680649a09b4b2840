// Package promise measures the product's promises and records the figures.
//
// A test collects [Times] (or counts) and calls [Record]: the figure is logged, and appended as a line of JSON to the
// file that SIGNALBOX_PROMISES names, if it is set. `make prove` sets it, runs the tests at full length
// (SIGNALBOX_PROVE=1, see [Trials] and [Length]), and the program in the folder page adds the lines to figures.jsonl,
// which holds the newest figures of all promises, and turns them into docs/reliability.md.
//
// The package only records. The tests' own assertions fail on values over a limit.
package promise
