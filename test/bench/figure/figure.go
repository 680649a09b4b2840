// Package figure makes one number of many, and says whether it meets an aim. The sections of the page of benchmarks use it;
// durations are [github.com/signalbox-dev/signalbox/test/promise.Times].
package figure

import (
	"math"
	"slices"
)

// Quantile of values, by nearest rank. NaN when there are none.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// Median of values.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Verdict says whether an aim was met.
func Verdict(met bool) string {
	if met {
		return "met"
	}
	return "missed"
}
