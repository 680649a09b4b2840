//go:build unix

package filebox

import (
	"encoding/json"
	"iter"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
)

// book is the content of the file. Times are by the clock of the host, which all processes share.
type book struct {
	Queues []*queue `json:"queues"`
}

// queue holds the events of one dispatcher.
type queue struct {
	Name   inbox.Name  `json:"name"`
	Owner  inbox.Owner `json:"owner"`
	Parked bool        `json:"parked"`
	// Head is the position of the last event.
	Head int64 `json:"head"`
	// Waiting are the pending events, in order of acceptance.
	Waiting  []*waiting `json:"waiting"`
	Dead     []dead     `json:"dead"`
	Progress time.Time  `json:"progress,omitzero"`
}

type waiting struct {
	ID       string          `json:"id"`
	Lane     string          `json:"lane,omitempty"`
	Item     json.RawMessage `json:"item"`
	Accepted time.Time       `json:"accepted"`
	Due      time.Time       `json:"due"`
	// Claimed is the epoch of the owner that claimed it last, until the outcome of the claim is recorded.
	Claimed int64 `json:"claimed,omitempty"`
	Attempt int   `json:"attempt"`
}

// dead is an event after its delivery was given up. It is kept for inspection.
type dead struct {
	ID     string          `json:"id"`
	Item   json.RawMessage `json:"item"`
	Reason string          `json:"reason"`
}

func (b *book) queue(name inbox.Name) *queue {
	for _, q := range b.Queues {
		if q.Name == name {
			return q
		}
	}
	q := &queue{Name: name}
	b.Queues = append(b.Queues, q)
	return q
}

// ready returns the events that may be claimed, in order. It returns none of a lane while the lane's first event is not
// due.
func (q *queue) ready(now time.Time) iter.Seq[*waiting] {
	return func(yield func(*waiting) bool) {
		blocked := map[string]bool{}
		for _, w := range q.Waiting {
			switch {
			case w.Lane != "" && blocked[w.Lane]:
			case w.Due.After(now) && (w.Claimed == 0 || w.Claimed == q.Owner.Epoch):
				blocked[w.Lane] = true
			case !yield(w):
				return
			}
		}
	}
}

func (q *queue) due(now time.Time) bool {
	for range q.ready(now) {
		return true
	}
	return false
}

func (q *queue) claim(now time.Time, limit int, visible time.Duration) (claimed []inbox.Delivery) {
	q.Progress = now
	for w := range q.ready(now) {
		if len(claimed) == limit {
			break
		}
		w.Claimed, w.Due = q.Owner.Epoch, now.Add(visible)
		w.Attempt++
		claimed = append(claimed, inbox.Delivery{ID: w.ID, Lane: w.Lane, Attempt: w.Attempt, Item: w.Item})
	}
	return claimed
}

func (q *queue) record(now time.Time, outcomes []inbox.DeliveryOutcome) {
	q.Progress = now
	byID := make(map[string]inbox.Outcome, len(outcomes))
	for _, o := range outcomes {
		byID[o.ID] = o.Outcome
	}
	var still []*waiting
	for _, w := range q.Waiting {
		outcome, ok := byID[w.ID]
		if !ok {
			still = append(still, w)
			continue
		}
		switch outcome.Result {
		case inbox.Retry:
			w.Claimed, w.Due = 0, now.Add(outcome.After)
			still = append(still, w)
		case inbox.Released:
			w.Claimed, w.Due = 0, now
			w.Attempt--
			still = append(still, w)
		case inbox.Dead:
			q.Dead = append(q.Dead, dead{ID: w.ID, Item: w.Item, Reason: outcome.Reason})
		case inbox.Done:
		}
	}
	q.Waiting = still
}

func (q *queue) progress(now time.Time) inbox.Progress {
	p := inbox.Progress{
		Name: q.Name, Owner: q.Owner, Head: q.Head, Routed: q.Head, Pending: int64(len(q.Waiting)), Due: q.due(now),
		Parked:        q.Parked,
		SinceProgress: -1,
	}
	if !q.Progress.IsZero() {
		p.SinceProgress = now.Sub(q.Progress)
	}
	for _, w := range q.Waiting {
		p.Oldest = max(p.Oldest, now.Sub(w.Accepted))
	}
	for w := range q.ready(now) {
		p.Lag = max(p.Lag, now.Sub(w.Accepted))
	}
	return p
}
