package main

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// openRuns returns the server's memory with many waiting runs.
func openRuns(t platform.T, s *platform.Server, p plan) float64 {
	name := s.Publish(t, platform.Document("open", "  - rest:\n      wait: {hours: 1}\n"))
	start := func() error { _, err := s.TryStart(t.Context(), name, `{}`); return err }
	if err := platform.Concurrently(p.openRuns, p.callers, start); err != nil {
		t.Fatalf("open runs: %v", err)
	}
	platform.Eventually(t, time.Minute, func() string {
		res, err := s.Runs.ListRuns(t.Context(), connect.NewRequest(&signalboxv1.ListRunsRequest{
			Project: platform.DefaultProject,
			Filter:  &signalboxv1.RunFilter{Workflow: name, Statuses: []string{"queued", "running"}}, PageSize: 1,
		}))
		switch {
		case err != nil:
			return err.Error()
		case len(res.Msg.GetRuns()) > 0:
			return "not all runs wait yet"
		}
		return ""
	})
	return s.Memory(t)
}

// devStarts measures `signalbox dev` from its start to ready, in milliseconds. The first start warms the machine.
func devStarts(t platform.T, p plan) []float64 {
	out := make([]float64, 0, p.starts)
	for i := range p.starts + 1 {
		began := time.Now()
		s := platform.LaunchDev(t)
		platform.Eventually(t, time.Minute, func() string {
			status, body, err := s.Get(t.Context(), "/readyz?role=worker")
			switch {
			case err != nil:
				return err.Error()
			case status != http.StatusOK:
				return body
			}
			return ""
		})
		if i > 0 {
			out = append(out, float64(time.Since(began).Milliseconds()))
		}
		s.Interrupt()
		if _, ended := s.WaitFor(15 * time.Second); !ended {
			t.Fatalf("dev does not stop")
		}
	}
	return out
}

type size struct {
	name      string
	mb, limit float64
}

func sizes(t platform.T) []size {
	var out []size
	for _, b := range []struct {
		name, path string
		limit      float64
	}{
		{"signalbox", platform.Binary(t), 184}, {"signalbox-server", platform.ServerBinary(t), 72},
	} {
		info, err := os.Stat(b.path)
		if err != nil {
			t.Fatalf("measure the binary: %v", err)
		}
		out = append(out, size{b.name, float64(info.Size()) / (1 << 20), b.limit})
	}
	return out
}

// otherLoad returns the share of all processors that other programs use while this one waits, from 0 to 1, or zero
// where the system does not report it. All processes of a section are stopped by then.
func otherLoad(t platform.T) float64 {
	const length = 3 * time.Second
	busy, all := processors(t)
	select {
	case <-time.After(length):
	case <-t.Context().Done():
	}
	busyLater, allLater := processors(t)
	if allLater == all {
		return 0
	}
	return (busyLater - busy) / (allLater - all)
}

// processors returns the time that all processors were busy, and the whole time, since the system's start.
func processors(t platform.T) (busy, all float64) {
	const (
		idle, ioWait = 3, 4 // fields of /proc/stat after the name
		counted      = 8    // those of guests are part of the others
	)
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	first, _, _ := strings.Cut(string(data), "\n")
	for i, field := range strings.Fields(first)[1 : 1+counted] {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			t.Fatalf("read /proc/stat: %v", err)
		}
		all += n
		if i != idle && i != ioWait {
			busy += n
		}
	}
	return busy, all
}

// machine describes the machine of the measurement.
func machine() string {
	model := runtime.GOARCH
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	total := ""
	if data, err := os.ReadFile("/proc/meminfo"); err == nil {
		if fields := strings.Fields(string(data)); len(fields) > 1 {
			if kb, err := strconv.Atoi(fields[1]); err == nil {
				total = fmt.Sprintf(", %d GB of memory", (kb+1<<19)>>20)
			}
		}
	}
	return fmt.Sprintf("%d × %s%s, %s/%s, %s", runtime.NumCPU(), model, total, runtime.GOOS, runtime.GOARCH,
		runtime.Version())
}
