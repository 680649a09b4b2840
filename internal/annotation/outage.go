package annotation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Outage is an outage of Temporal as one server saw it.
type Outage struct {
	// Server is the ID of the process.
	Server string
	Since  time.Time
	// Kind is the last kind of the connection's state; empty if the process was never connected.
	Kind string
	// SeenAt is when the server last confirmed the outage, or saw its end.
	SeenAt time.Time
	// EndedAt is zero while the server has not seen its end.
	EndedAt time.Time
}

// Store stores outages.
type Store interface {
	// WriteOutages adds outages, or updates those with the same server and start.
	WriteOutages(ctx context.Context, list []Outage) error
	// ListOutages returns outages that began before to and were seen at or after seen, newest first.
	ListOutages(ctx context.Context, seen, to time.Time, limit int) ([]Outage, error)
}

// openFor is how long after its last confirmation an outage counts as open: several intervals of confirmation.
const openFor = 6 * confirmEvery

// end returns the end of an outage; zero if it is open. A server that was killed confirms no more, and its outage ended
// for it then.
func (o Outage) end(now time.Time) time.Time {
	if o.EndedAt.IsZero() && now.Sub(o.SeenAt) > openFor {
		return o.SeenAt
	}
	return o.EndedAt
}

// merge joins the outages of all servers that overlap to periods, and leaves out those that were over before from.
func merge(outages []Outage, from, now time.Time) (out []Annotation) {
	slices.SortFunc(outages, func(a, b Outage) int { return a.Since.Compare(b.Since) })
	var servers, kinds []string
	for _, o := range outages {
		end := o.end(now)
		if !end.IsZero() && end.Before(from) {
			continue
		}
		last := len(out) - 1
		if last < 0 || !out[last].End.IsZero() && out[last].End.Before(o.Since) {
			out = append(out, Annotation{
				Kind: KindOutage, Start: o.Since, End: end, Title: "Temporal was unavailable", Subject: "temporal"})
			last++
			servers, kinds = nil, nil
		}
		a := &out[last]
		if end.IsZero() || !a.End.IsZero() && end.After(a.End) {
			a.End = end
		}
		if a.End.IsZero() {
			a.Title = "Temporal is unavailable"
		}
		servers, kinds = add(servers, o.Server), add(kinds, kindText(o.Kind))
		a.Detail = fmt.Sprintf("%s, seen by %d server", strings.Join(kinds, ", "), len(servers))
		if len(servers) > 1 {
			a.Detail += "s"
		}
	}
	return out
}

func kindText(kind string) string {
	if kind == "" {
		return "not connected since the start of the server"
	}
	return kind
}

// add appends a text that the list does not have.
func add(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
