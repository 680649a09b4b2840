package batch

import (
	"context"
	"math"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// perSecond is how often a batch claims items at least, unless its rate is lower, so that a pause takes effect at once.
const perSecond = 4

// pace limits the rate at which items begin, in rounds of a quarter of a second's worth: at least one item and at most
// [width]. A slow round is made up for by the next one.
type pace struct {
	limiter *rate.Limiter
	round   int
}

func newPace(itemsPerSecond float64) pace {
	round := int(min(max(1, math.Floor(itemsPerSecond/perSecond)), width))
	p := pace{rate.NewLimiter(rate.Limit(itemsPerSecond), 2*round), round}
	p.limiter.AllowN(time.Now(), round) // a batch begins with one round, not with two
	return p
}

// wait returns how many items may begin now, once the rate allows them.
func (p pace) wait(ctx context.Context) (int, error) {
	return p.round, p.limiter.WaitN(ctx, p.round)
}

// readable returns the text of an error in a form that every store accepts.
func readable(err error) string {
	return strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "\uFFFD"), "\x00", "\uFFFD")
}
