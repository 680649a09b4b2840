package main

// The colours are those of Okabe and Ito, which people with any kind of colour vision distinguish, without the yellow
// that is invisible on white and with a grey that both of Grafana's themes show.
const (
	orange = "#E69F00"
	sky    = "#56B4E9"
	green  = "#009E73"
	blue   = "#0072B2"
	red    = "#D55E00" // vermillion
	purple = "#CC79A7"
	grey   = "#999999"
)

// color is the colour of the series whose names match a regular expression.
type color struct{ pattern, color string }

// state is a value of a gauge that stands for a state, with the text that replaces it.
type state struct {
	value       string
	text, color string
}

// yes are the states of a gauge that is 1 when all is well.
func yes(good, bad string) []state { return []state{{"0", bad, red}, {"1", good, blue}} }

// no are the states of a gauge that is 0 when all is well.
func no(good, bad string) []state { return []state{{"0", good, blue}, {"1", bad, red}} }

// levels are the states of a gauge that is 0 when all is well, 1 when there is a problem, and 2 when it does not work.
func levels(good, impaired, down string) []state {
	return []state{{"0", good, blue}, {"1", impaired, orange}, {"2", down, red}}
}

// percentiles are the colours of the series that percentile queries return.
func percentiles() []color { return []color{{"^p50", sky}, {"^p95", blue}, {"^p99", purple}} }
