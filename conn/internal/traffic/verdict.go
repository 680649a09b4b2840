package traffic

import "time"

// Verdict is how Temporal serves the requests of a program.
type Verdict int

// The verdicts.
const (
	Served  Verdict = iota // most requests are served, or there are too few requests for another verdict
	Late                   // most requests take longer than slowAfter
	Failing                // most requests are refused, or not answered
)

const (
	// recent is the period that shows a change first, lately the one that decides where requests are rare.
	recent = 5 * time.Second
	lately = 30 * time.Second
	// minInTrouble is how many requests must be in trouble: one that fails alone may itself be the cause.
	minInTrouble = 3
	// servedShare is how many requests per request in trouble must be served to return to Served.
	servedShare = 4
)

// Counts counts the requests of a period. Late are those that were served and took too long, and those that are under
// way for too long.
type Counts struct{ Served, Late, Failed int }

func (c Counts) add(other Counts) Counts {
	return Counts{c.Served + other.Served, c.Late + other.Late, c.Failed + other.Failed}
}

// mostInTrouble reports whether most requests are in trouble, and at least minInTrouble.
func (c Counts) mostInTrouble() bool {
	trouble := c.Late + c.Failed
	return trouble >= minInTrouble && trouble > c.Served
}

// Periods are the input of a verdict: the requests of the last five seconds, and those of the last thirty.
type Periods struct{ Recent, Lately Counts }

// NextVerdict returns the verdict that follows the previous one. Late or Failing begins when most requests are in
// trouble, and ends when four out of five are served, or when no request has been in trouble for thirty seconds. In
// between the verdict stays as it is.
func NextVerdict(f Periods, before Verdict) Verdict {
	trouble := f.Recent.Late + f.Recent.Failed
	switch {
	case before == Served && !f.Recent.mostInTrouble() && !f.Lately.mostInTrouble():
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
