package batch

import (
	"context"
	"math"
	"strings"
	"time"
)

// perSecond is how often a batch that is fast claims items: often enough that a pause takes hold at once, rarely enough that
// claims cost little.
const perSecond = 4

// pace says how many items may be begun.
type pace struct {
	rate float64
	// saved is how many could have been begun since, up to two rounds: what a slow round has left over is made up for.
	saved float64
	since time.Time
}

// wait returns how many items may be begun now, at least one, as soon as that is a quarter of a second's worth.
func (p *pace) wait(ctx context.Context) (int, error) {
	round := max(1, math.Floor(p.rate/perSecond))
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

// readable is an error as text that every store takes.
func readable(err error) string {
	return strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "\uFFFD"), "\x00", "\uFFFD")
}
