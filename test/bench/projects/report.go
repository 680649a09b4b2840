package projects

import (
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/test/bench/figure"
)

// Markdown writes the section's body, one line per call.
func (r Report) Markdown(line func(format string, args ...any)) {
	if r.few.state == "" {
		line("There was no Postgres and no Redis to measure with.")
		return
	}
	line("One server with both roles, Postgres, Redis and Temporal on the same machine; nothing happens in any project. " +
		"The server is started anew")
	line("for each column, and observed for %s after %s.", r.plan.Length, r.plan.Settle)
	line("")
	columns := []cost{r.few, r.parked, r.served}
	head, rule := "| in a minute |", "|---|"
	for _, c := range columns {
		head, rule = head+fmt.Sprintf(" %s |", c.state), rule+"---|"
	}
	line("%s", head)
	line("%s", rule)
	for _, row := range []struct {
		what, format string
		value        func(cost) float64
	}{
		{"processor time of the server", "%.2f s", func(c cost) float64 { return c.cpu }},
		{"processor time of Temporal", "%.2f s", func(c cost) float64 { return c.temporalCPU }},
		{"requests to Temporal", "%.0f", func(c cost) float64 { return c.temporal }},
		{"transactions of Postgres", "%.0f", func(c cost) float64 { return c.postgres }},
		{"commands of Redis, with those within scripts", "%.0f", func(c cost) float64 { return c.redis }},
		{"memory of the server, at its end", "%.0f MB", func(c cost) float64 { return c.memory }},
		{"series of metrics", "%.0f", func(c cost) float64 { return c.series }},
		{"a scrape of them", "%.0f ms", func(c cost) float64 { return float64(c.scrape) / float64(time.Millisecond) }},
	} {
		text := "| " + row.what + " |"
		for _, c := range columns {
			text += fmt.Sprintf(" "+row.format+" |", row.value(c))
		}
		line("%s", text)
	}
	line("")
	line("From a request, or from an event, to the end of the first run in a parked project, %d times: p50, p95, longest "+
		"%d, %d, %d ms.", len(r.wakes), r.wakes.At(.5).Milliseconds(), r.wakes.At(.95).Milliseconds(),
		r.wakes.Worst().Milliseconds())
}

// Aims returns the rows of the table of aims.
func (r Report) Aims() []figure.Aim {
	if r.few.state == "" {
		return nil
	}
	multiple := func(what string, value func(cost) float64) figure.Aim {
		times := value(r.parked) / value(r.few)
		return figure.Aim{
			What: fmt.Sprintf("%s of a server with %d parked projects, of that with %d", what, r.plan.Parked, r.plan.Few),
			Aim:  fmt.Sprintf("< %d ×", parkedAim), Seen: fmt.Sprintf("%.2f ×", times), Met: times < parkedAim,
		}
	}
	return []figure.Aim{
		multiple("processor time", func(c cost) float64 { return c.cpu }),
		multiple("requests to Temporal", func(c cost) float64 { return c.temporal }),
		multiple("memory", func(c cost) float64 { return c.memory }),
		{
			What: "the first run in a parked project, from its request or event to its end: p95", Aim: "< " + wakeAim.String(),
			Seen: fmt.Sprintf("%d ms", r.wakes.At(.95).Milliseconds()), Met: r.wakes.At(.95) < wakeAim,
		},
		{
			What: fmt.Sprintf("series of a server with %d projects", r.plan.Served), Aim: fmt.Sprintf("< %d", seriesAim),
			Seen: fmt.Sprintf("%.0f", r.served.series), Met: r.served.series < seriesAim,
		},
		{
			What: "a scrape of them", Aim: "< " + scrapeAim.String(),
			Seen: fmt.Sprintf("%d ms", r.served.scrape.Milliseconds()), Met: r.served.scrape < scrapeAim,
		},
	}
}
