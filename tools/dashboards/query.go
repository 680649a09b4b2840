package main

import "fmt"

// within is the filter of the chosen projects, and at of the chosen servers.
const (
	within = `project=~"$project"`
	at     = `instance=~"$instance"`
)

// counted is the number of events in the interval of a bar, by labels. Grafana's rate interval has one scrape more than
// the interval of the bar, so that no event is between two bars; the product of the rate and the length of the bar
// counts none twice.
func counted(labels, counter, filter string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s{%s}[$__rate_interval])) * $__interval_ms / 1000", labels, counter, filter)
}

// rated is the number of events per second, by labels.
func rated(labels, counter, filter string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s{%s}[$__rate_interval]))", labels, counter, filter)
}

// quantiles are the queries of percentiles of a histogram, of what was measured in the window before each point.
func quantiles(histogram, filter, window string, percents ...int) (all []query) {
	for _, percent := range percents {
		all = append(all, query{
			fmt.Sprintf("histogram_quantile(0.%02d, sum by (le) (rate(%s_bucket{%s}[%s])))", percent, histogram, filter, window),
			fmt.Sprintf("p%d", percent),
		})
	}
	return all
}

// latest is the value of a gauge that all servers export with the same value.
func latest(labels, gauge, filter string) string {
	return fmt.Sprintf("max by (%s) (%s{%s})", labels, gauge, filter)
}
