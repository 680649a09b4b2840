package invocation

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// redrawEvery is the shortest time between two drawings of a Progress.
const redrawEvery = 100 * time.Millisecond

// Progress is a line at the bottom of a terminal that shows how far a command is. Without a terminal nothing is drawn.
type Progress struct {
	w     io.Writer // nil: no terminal
	width int
	now   func() time.Time

	began, drawn time.Time
	first        int64 // what was done at the first drawing, so that the rate is that of this command
	shown        bool
}

// Progress returns a line on standard error. Clear it before anything else is printed there.
func (s *Invocation) Progress() *Progress {
	if !IsTerminal(s.Err) || s.Env["TERM"] == "dumb" {
		return &Progress{}
	}
	return &Progress{w: s.Err, width: Width(s.Err), now: s.Now}
}

// Of shows how many of a known number of things are done, with the rate and the time that is left.
func (p *Progress) Of(done, total int64, noun string) {
	rate, due := p.rate(done)
	if !due || total <= 0 {
		return
	}
	const bar = 20
	full := int(min(done, total) * bar / total)
	line := fmt.Sprintf("[%s%s] %3d%%  %d of %s", strings.Repeat("#", full), strings.Repeat(".", bar-full),
		min(done, total)*100/total, done, output.Count(total, noun))
	if rate > 0 {
		line += fmt.Sprintf(", %.1f/s, %s left", rate,
			output.Span(time.Duration(float64(total-done)/rate*float64(time.Second)).Round(time.Second)))
	}
	p.draw(line)
}

// Bytes shows how many bytes have arrived where their number is not known before.
func (p *Progress) Bytes(n int64) {
	const mebibyte = 1 << 20
	rate, due := p.rate(n)
	if !due {
		return
	}
	line := fmt.Sprintf("%.1f MiB", float64(n)/mebibyte)
	if rate > 0 {
		line += fmt.Sprintf(", %.1f MiB/s", rate/mebibyte)
	}
	p.draw(line)
}

// rate returns what is done per second, 0 if that is not known yet, and whether to draw now.
func (p *Progress) rate(done int64) (perSecond float64, due bool) {
	if p.w == nil {
		return 0, false
	}
	now := p.now()
	if p.began.IsZero() {
		p.began, p.first = now, done
	}
	if now.Sub(p.drawn) < redrawEvery {
		return 0, false
	}
	p.drawn = now
	if length := now.Sub(p.began).Seconds(); length >= 1 {
		perSecond = float64(done-p.first) / length
	}
	return perSecond, true
}

func (p *Progress) draw(line string) {
	if cut := p.width - 1; utf8.RuneCountInString(line) > cut { // a line that wraps could not be replaced
		line = string([]rune(line)[:max(0, cut)])
	}
	_ = terminal.Redraw(p.w, 0, line) // an error of standard error cannot be reported
	p.shown = true
}

// Clear removes the line.
func (p *Progress) Clear() {
	if p.shown {
		_ = terminal.Redraw(p.w, 0, "") // as above
		p.shown = false
	}
}
