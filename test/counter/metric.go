package counter

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// Goroutines is the metric that every process serves.
const Goroutines = "go_goroutines"

// Metric reads a metric of a server: the sum of its series that carry all of the labels, each as `name="value"`, and how many these are.
func Metric(ctx context.Context, s *platform.Server, name string, labels ...string) (sum float64, series int, err error) {
	status, body, err := s.Get(ctx, "/metrics")
	if err != nil {
		return 0, 0, err
	}
	if status != http.StatusOK {
		return 0, 0, fmt.Errorf("/metrics answers %d", status)
	}
	lines := bufio.NewScanner(strings.NewReader(body))
	lines.Buffer(nil, len(body)+1)
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

// cutSeries splits a line of the text format into series and value where the series is of the metric and has the labels.
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
