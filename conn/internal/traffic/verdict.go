package traffic

import "time"

// Verdict is how Temporal serves the requests of a program.
type Verdict int

// The verdicts.
const (
	Served  Verdict = iota // as it should, or there are too few requests to say
	Late                   // most requests take longer than they should
	Failing                // most requests are refused, or not answered
)

const (
	// recent is the period in which a change shows first, lately the one that decides where requests are rare.
	recent = 5 * time.Second
	lately = 30 * time.Second
	// fewest is how many requests have to be in trouble: one that fails alone may be at fault itself.
	fewest = 3
	// servedShare is how many requests are served for each one in trouble when the trouble is over.
	servedShare = 4
)

// Counts are the requests of a period. Late ones are those that were served and took too long, and those that are under way for too long.
type Counts struct{ Served, Late, Failed int }

func (c Counts) add(other Counts) Counts {
	return Counts{c.Served + other.Served, c.Late + other.Late, c.Failed + other.Failed}
}

// most reports whether most requests are in trouble, enough of them to say so.
func (c Counts) most() bool {
	trouble := c.Late + c.Failed
	return trouble >= fewest && trouble > c.Served
}

// Facts are what a verdict is derived from: the requests of the last five seconds, and those of the last thirty.
type Facts struct{ Recent, Lately Counts }

// Judge returns the verdict after the one before. It begins where most requests are in trouble, and ends where four out of five are served
// again, or no request has been in trouble for thirty seconds: between the two it stays as it is.
func Judge(f Facts, before Verdict) Verdict {
	trouble := f.Recent.Late + f.Recent.Failed
	switch {
	case before == Served && !f.Recent.most() && !f.Lately.most():
		return Served
	case before != Served && f.Recent.Served > 0 && f.Recent.Served >= servedShare*trouble:
		return Served
	case f.Lately.Late+f.Lately.Failed == 0:
		return Served
	case f.Recent.Failed > 0 || trouble == 0 && f.Lately.Failed > 0:
		return Failing
	default:
		return Late
	}
}
