package promise

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// Variables of the environment.
const (
	FullVariable = "SIGNALBOX_PROVE"      // 1: full numbers of trials and full lengths of outages
	FileVariable = "SIGNALBOX_PROMISES"   // file to which figures are appended; none when empty
	SeedVariable = "SIGNALBOX_CHAOS_SEED" // of the first random schedule; random when empty
)

// Full reports whether tests run at full length.
func Full() bool { return os.Getenv(FullVariable) == "1" }

// OnlyFull skips a test that runs at full length only, because others cover its kind in `make test`. Covered says
// which.
func OnlyFull(skip func(...any), covered string) {
	if !Full() {
		skip("`make prove` runs this one; in `make test`, " + covered)
	}
}

// Trials returns the number of trials: the first number, or the second at full length.
func Trials(short, full int) int {
	if Full() {
		return full
	}
	return short
}

// Length returns the length of an outage: the first, or the second at full length.
func Length(short, full time.Duration) time.Duration {
	if Full() {
		return full
	}
	return short
}

// Seed returns the seed of the first random schedule.
func Seed(t platform.T) uint64 {
	t.Helper()
	text := os.Getenv(SeedVariable)
	if text == "" {
		return uint64(rand.Uint32())
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", SeedVariable, err)
	}
	return seed
}

// Times are measured durations of one thing.
type Times []time.Duration

// At returns the duration that the given share of the trials, 0 to 1, did not exceed; 0 without trials.
func (d Times) At(share float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	rank := int(share*float64(len(sorted)) + 0.999999)
	return sorted[max(rank, 1)-1]
}

// Worst returns the longest duration.
func (d Times) Worst() time.Duration { return d.At(1) }

func (d Times) String() string {
	return fmt.Sprintf("p50 %s, p95 %s, worst %s", Round(d.At(.5)), Round(d.At(.95)), Round(d.Worst()))
}

// Round keeps the three significant digits.
func Round(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond)
	case d >= time.Microsecond:
		return d.Round(100 * time.Nanosecond)
	}
	return d
}

// Figure is one measurement of one promise.
type Figure struct {
	Promise string `json:"promise"` // P-C1, or the requirement's ID
	What    string `json:"what"`    // what was tried, and what the figure counts
	Aim     string `json:"aim"`     // the promised value; empty if the figure is for information only
	Trials  int    `json:"trials"`
	Figure  string `json:"figure"`
	Seed    uint64 `json:"seed"` // of random schedules; 0 for none
	Test    string `json:"test"` // set by Record
	Full    bool   `json:"full"` // set by Record
	Alert   *Alert `json:"alert,omitempty"`
}

// Alert are the times of one alert of one fault. The page of alerts lists them, not that of promises.
type Alert struct {
	Name      string        `json:"name"`
	Severity  string        `json:"severity"`
	Fault     string        `json:"fault"`
	Fired     time.Duration `json:"fired"`     // from the fault until it fired in Prometheus
	Delivered time.Duration `json:"delivered"` // from the fault until it arrived at the receiver of Alertmanager
	Resolved  time.Duration `json:"resolved"`  // from the repair until its resolution arrived there; 0 before that
}

func (a *Alert) String() string {
	text := fmt.Sprintf("fired after %s, delivered after %s", Round(a.Fired), Round(a.Delivered))
	if a.Resolved > 0 {
		text += fmt.Sprintf(", resolved after %s", Round(a.Resolved))
	}
	return text
}

// Record logs a figure and appends it to the file of promises, if one is set.
func Record(t platform.T, f Figure) {
	t.Helper()
	f.Test, f.Full = t.Name(), Full()
	t.Logf("%s %s: %s over %d trials", f.Promise, f.What, f.Figure, f.Trials)
	path := os.Getenv(FileVariable)
	if path == "" || t.Failed() {
		return
	}
	line, err := json.Marshal(f)
	if err != nil {
		t.Fatalf("write the figure of %s: %v", f.Promise, err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatalf("open the file of promises: %v", err)
	}
	// One write of one line: several test processes append concurrently.
	if _, err := file.Write(append(line, '\n')); err != nil {
		t.Fatalf("write to the file of promises: %v", err)
	}
	if err := file.Close(); err != nil {
		t.Fatalf("close the file of promises: %v", err)
	}
}

// Read reads the figures of a file that Record has written.
func Read(text string) ([]Figure, error) {
	var figures []Figure
	for line := range strings.Lines(text) {
		var f Figure
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			return nil, fmt.Errorf("read the figure %q: %w", line, err)
		}
		figures = append(figures, f)
	}
	return figures, nil
}

// Limit returns the limit for a duration with the promised limit aim. On a machine that runs other tests at the same
// time everything takes longer, and the machine stalls at times. The aim applies at full length, where tests run one
// by one; otherwise the limit is ten times as long, and half a minute at least.
func Limit(aim time.Duration) time.Duration {
	const crowded, still = 10, 30 * time.Second
	if Full() {
		return aim
	}
	return max(crowded*aim, still)
}

// Within fails the test when a figure is over the [Limit] of its aim.
func Within(t platform.T, what string, got, aim time.Duration) {
	t.Helper()
	if limit := Limit(aim); got > limit {
		t.Errorf("%s", platform.TooSlow(what, got, limit))
	}
}

// Write writes figures to a file that Read reads.
func Write(path string, figures []Figure) error {
	var b strings.Builder
	for _, f := range figures {
		line, err := json.Marshal(f)
		if err != nil {
			return fmt.Errorf("encode the figure of %s: %w", f.Promise, err)
		}
		b.Write(append(line, '\n'))
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}
