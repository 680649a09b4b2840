package connection

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/platform"
)

const (
	// benchmarked is the package with the benchmarks of Client and Status.
	benchmarked = "github.com/signalbox-dev/signalbox/conn"
	// longestMetric is the unit that the benchmark of the longest call reports.
	longestMetric = "longest-ns"
)

// costs are nanoseconds by benchmark, such as "Client/frozen/alone", one value per round.
type costs struct {
	perCall map[string][]float64
	longest map[string][]float64
}

// measureCosts runs the benchmarks of package conn, all of them once per round.
func measureCosts(t platform.T, rounds int, each string) costs {
	program := filepath.Join(t.TempDir(), "conn.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", program, benchmarked)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		t.Fatalf("build the benchmarks of %s: %v", benchmarked, err)
	}
	out := costs{perCall: map[string][]float64{}, longest: map[string][]float64{}}
	for range rounds {
		cmd := exec.CommandContext(t.Context(), program, "-test.run", "^$", "-test.bench", "^Benchmark(Client|Status)",
			"-test.benchtime", each)
		cmd.Stderr = os.Stderr
		text, err := cmd.Output()
		if err != nil {
			t.Fatalf("run the benchmarks of %s: %v\n%s", benchmarked, err, text)
		}
		if err := out.add(string(text)); err != nil {
			t.Fatalf("the benchmarks of %s: %v", benchmarked, err)
		}
	}
	return out
}

// benchmarkLine is one line of `go test -bench`: the name, the number of processors, the iterations, and values with
// their units.
var benchmarkLine = regexp.MustCompile(`(?m)^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

func (c costs) add(text string) error {
	for _, line := range benchmarkLine.FindAllStringSubmatch(text, -1) {
		fields := strings.Fields(line[2])
		for i := 0; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return fmt.Errorf("read %q: %w", line[0], err)
			}
			switch fields[i+1] {
			case "ns/op":
				c.perCall[line[1]] = append(c.perCall[line[1]], value)
			case longestMetric:
				c.longest[line[1]] = append(c.longest[line[1]], value)
			}
		}
	}
	return nil
}

// markdown is the table of what calls cost. P-C4 holds when every situation of Client is below its limit.
func (c costs) markdown(p printer) {
	const limit = 20 // nanoseconds, P-C4
	p("| what | one caller | 2 × GOMAXPROCS callers | compared with a mutex | aim | |")
	p("|---|---|---|---|---|---|")
	mutex := [2]float64{figure.Median(c.perCall["ClientBehindMutex/alone"]),
		figure.Median(c.perCall["ClientBehindMutex/contended"])}
	for _, situation := range []struct{ name, words string }{
		{"connected", "connected"}, {"stopped", "reconnecting, Temporal's port is closed"},
		{"frozen", "reconnecting, Temporal is frozen"},
	} {
		alone, contended := figure.Median(c.perCall["Client/"+situation.name+"/alone"]),
			figure.Median(c.perCall["Client/"+situation.name+"/contended"])
		p("| `Client()`, %s | %.1f ns | %.1f ns | %.2f ×, %.2f × | < %d ns | %s |", situation.words, alone, contended,
			alone/mutex[0], contended/mutex[1], limit, figure.Verdict(math.Max(alone, contended) < limit))
	}
	p("| a pointer behind a mutex | %.1f ns | %.1f ns | | | |", mutex[0], mutex[1])
	for _, situation := range []string{"connected", "stopped", "frozen"} {
		p("| `Status()`, %s | %.0f ns | %.0f ns | | | |", situation, figure.Median(c.perCall["Status/"+situation+"/alone"]),
			figure.Median(c.perCall["Status/"+situation+"/contended"]))
	}
	p("")
	p("The longest single call of `Client()`, of about a million, median of rounds (largest): %s connected, %s stopped, "+
		"%s frozen; with nothing",
		c.longestOf("connected"), c.longestOf("stopped"), c.longestOf("frozen"))
	p("called at all (the scheduler's share), %s. Time per call of many callers is the wall clock divided by all calls.",
		c.longestOf("nothing"))
}

func (c costs) longestOf(situation string) string {
	values := c.longest["ClientLongest/"+situation]
	return fmt.Sprintf("%.2f ms (%.2f ms)", figure.Median(values)/1e6, figure.Quantile(values, 1)/1e6)
}
