package runcmd

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

func step(number int64, status string) *signalboxv1.Step {
	return &signalboxv1.Step{
		Number: number, Kind: "set", Task: "greet", Path: "/do/0/" + strings.Repeat("x", 30), Status: status}
}

// frame returns the terminal's content after the last drawing: each drawing overwrites the previous one.
func frame(t *testing.T, text string) []string {
	t.Helper()
	const erase = "\x1b[J"
	at := strings.LastIndex(text, erase)
	require.NotEqual(t, -1, at, "redrawn in place")
	return strings.Split(strings.TrimRight(text[at+len(erase):], "\n"), "\n")
}

func TestScreenRedrawsInPlace(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newScreen(&out, output.Style{}, 45)
	run := &signalboxv1.Run{Status: "running", Workflow: "demo/hello", Version: "1.0.0"}
	s.update(&signalboxv1.WatchRunResponse{Run: run, Steps: []*signalboxv1.Step{step(1, "completed"), step(2, "running")}})
	require.NotContains(t, out.String(), "\x1b", "nothing to replace yet")
	s.update(&signalboxv1.WatchRunResponse{Run: run, Steps: []*signalboxv1.Step{step(2, "completed")}})
	require.Contains(t, out.String(), "\x1b[3A", "up over two steps and the run")
	require.Equal(t, []string{"--:--:-- 1 completed greet (set) /do/0/xxxxx…", "--:--:-- 2 completed greet (set) " +
		"/do/0/xxxxx…", "--:--:-- run running demo/hello 1.0.0"}, frame(t, out.String()))

	s.lost("here:1")
	require.Len(t, frame(t, out.String()), 4)
	s.found()
	require.Len(t, frame(t, out.String()), 3)

	var many []*signalboxv1.Step
	for n := range int64(40) {
		many = append(many, step(n+1, "completed"))
	}
	s.update(&signalboxv1.WatchRunResponse{Run: run, Steps: many})
	rows := frame(t, out.String())
	require.Len(t, rows, screenSteps+2)
	require.Equal(t, "… 25 earlier steps", rows[0])
	require.True(t, strings.HasPrefix(rows[1], "--:--:-- 26 "))
}

func TestScreenKeepsOrderAndColoursStatuses(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newScreen(&out, output.Style{Color: true}, 80)
	s.update(&signalboxv1.WatchRunResponse{
		Steps: []*signalboxv1.Step{step(3, "running")}, Run: &signalboxv1.Run{Status: "failed", Workflow: "w"}})
	s.update(&signalboxv1.WatchRunResponse{Steps: []*signalboxv1.Step{step(1, "failed"), step(2, "completed")}})
	rows := frame(t, out.String())
	require.True(t, strings.HasPrefix(rows[0], "--:--:-- 1 \x1b[31mfailed\x1b[0m greet"), rows[0])
	require.True(t, strings.HasPrefix(rows[2], "--:--:-- 3 \x1b[34mrunning\x1b[0m greet"), rows[2])
	require.True(t, strings.HasPrefix(rows[3], "--:--:-- run \x1b[31mfailed\x1b[0m w"), rows[3])
}

// A run that waits again reports its start, which is before the changes that were printed: no line has an earlier time
// than the one before.
func TestLinesKeepTheOrderOfTime(t *testing.T) {
	t.Parallel()
	at := func(second int) *timestamppb.Timestamp {
		return timestamppb.New(time.Date(2026, 11, 27, 12, 0, second, 0, time.UTC))
	}
	var out bytes.Buffer
	l := newLines(&out, output.Style{})
	l.update(&signalboxv1.WatchRunResponse{Run: &signalboxv1.Run{Status: "running", Workflow: "w", StartTime: at(1)}})
	done := step(1, "completed")
	done.StartTime, done.EndTime = at(1), at(5)
	l.update(&signalboxv1.WatchRunResponse{
		Steps: []*signalboxv1.Step{done}, Run: &signalboxv1.Run{Status: "waiting", Workflow: "w", StartTime: at(1)}})
	l.update(&signalboxv1.WatchRunResponse{
		Run: &signalboxv1.Run{Status: "completed", Workflow: "w", StartTime: at(1), EndTime: at(9)}})
	var times []string
	for line := range strings.Lines(out.String()) {
		times = append(times, line[:8])
	}
	require.Equal(t, []string{"12:00:01", "12:00:05", "12:00:05", "12:00:09"}, times)
}
