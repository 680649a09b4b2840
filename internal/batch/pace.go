package batch

import (
	"context"
	"math"
	"strings"
	"time"
)

// perSecond is how often a batch claims items at least, unless its rate is lower, so that a pause takes effect at once.
const perSecond = 4

// pace limits the rate at which items begin.
type pace struct {
	rate float64
	// saved is the number of items that the rate allows by now, up to two rounds, to catch up after a slow round.
	saved float64
	since time.Time
}

// wait returns how many items may begin now, at least one and at most [width], once the rate allows a quarter of a second's worth.
func (p *pace) wait(ctx context.Context) (int, error) {
	round := min(max(1, math.Floor(p.rate/perSecond)), width)
	if p.since.IsZero() {
		p.saved, p.since = round, time.Now()
	}
	for {
		now := time.Now()
		p.saved = min(p.saved+now.Sub(p.since).Seconds()*p.rate, 2*round)
		p.since = now
		if p.saved >= round {
			p.saved -= round
			return int(round), ctx.Err()
		}
		timer := time.NewTimer(time.Duration((round - p.saved) / p.rate * float64(time.Second)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return 0, ctx.Err()
		case <-timer.C:
		}
	}
}

// readable returns the text of an error in a form that every store accepts.
func readable(err error) string {
	return strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "\uFFFD"), "\x00", "\uFFFD")
}
