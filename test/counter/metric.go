package counter

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// Goroutines is a metric that every process serves.
const Goroutines = "go_goroutines"

// Metric reads a metric of a server: the sum of its series that have all labels, each as `name="value"`, and the number
// of these series.
func Metric(ctx context.Context, s *platform.Server, name string,
	labels ...string) (sum float64, series int, err error) {
	status, body, err := s.Get(ctx, "/metrics")
	if err != nil {
		return 0, 0, err
	}
	if status != http.StatusOK {
		return 0, 0, fmt.Errorf("/metrics answers %d", status)
	}
	return Sum(body, name, labels...)
}

// Sum is [Metric] for a page that was read before.
func Sum(page, name string, labels ...string) (sum float64, series int, err error) {
	lines := bufio.NewScanner(strings.NewReader(page))
	lines.Buffer(nil, len(page)+1)
	for lines.Scan() {
		found, text, ok := cutSeries(lines.Text(), name, labels)
		if !ok {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("the metric %s has the value %q: %w", found, text, err)
		}
		sum += value
		series++
	}
	return sum, series, lines.Err()
}

// cutSeries splits a line of the text format into series and value if the series belongs to the metric and has the
// labels.
func cutSeries(line, name string, labels []string) (series, value string, ok bool) {
	rest, found := strings.CutPrefix(line, name)
	if !found || rest == "" || (rest[0] != '{' && rest[0] != ' ') {
		return "", "", false
	}
	end := strings.LastIndexByte(line, ' ')
	for _, label := range labels {
		if !strings.Contains(line[:end], label) {
			return "", "", false
		}
	}
	return line[:end], line[end+1:], true
}

// Buckets reads a histogram of a page: the finite upper bounds of its buckets in their order, and how many measurements
// of all series each one includes.
func Buckets(page, name string) (bounds, counts []float64, err error) {
	sums := map[float64]float64{}
	for line := range strings.Lines(page) {
		found, text, ok := cutSeries(strings.TrimSpace(line), name+"_bucket", nil)
		if !ok {
			continue
		}
		_, rest, _ := strings.Cut(found, `le="`)
		le, _, _ := strings.Cut(rest, `"`)
		bound, err1 := strconv.ParseFloat(le, 64)
		count, err2 := strconv.ParseFloat(text, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, nil, fmt.Errorf("the histogram %s: %w", found, err)
		}
		if !math.IsInf(bound, 1) {
			sums[bound] += count
		}
	}
	bounds = slices.Sorted(maps.Keys(sums))
	for _, bound := range bounds {
		counts = append(counts, sums[bound])
	}
	return bounds, counts, nil
}
