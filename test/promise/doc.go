// Package promise measures what the product promises and records the figures.
//
// A test collects [Times] (or counts) and calls [Record]: the figure is logged, and appended as a line of JSON to the file
// that SIGNALBOX_PROMISES names, if it names one. `make prove` sets it, runs the tests at full length (SIGNALBOX_PROVE=1,
// see [Trials] and [Length]) and turns the lines into docs/promises.md by the program in the folder page.
//
// It only records. What is too slow fails by the test's own assertion.
package promise
