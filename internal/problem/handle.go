package problem

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
)

const (
	// maxOwner and maxNote are the longest texts in bytes.
	maxOwner = 200
	maxNote  = 2000
	// maxSnooze is the longest snooze.
	maxSnooze = 30 * 24 * time.Hour
	// attempts is how often a change is tried while the recorder writes the same row.
	attempts = 3
)

// Change names the problem to change, as the caller has read it.
type Change struct {
	ID       string
	Revision int64
}

// Acknowledge marks a problem as seen by the caller until it is resolved, however it grows. It ends a snooze. An empty
// note keeps the present one. It changes nothing if the caller has acknowledged the problem already.
func (s *Service) Acknowledge(ctx context.Context, c Change, note string) (Problem, error) {
	if err := checkText("note", note, maxNote); err != nil {
		return Problem{}, err
	}
	actor, _ := auth.ActorFrom(ctx)
	return s.change(ctx, c, audit.ProblemAcknowledge, note, func(p Problem) (Handling, bool, error) {
		h, mine := p.Handling, p.State == Acknowledged && p.Acknowledger == actor.Name
		h.Note, h.SnoozeUntil, h.SnoozeCount = cmp.Or(note, h.Note), time.Time{}, 0
		if !mine {
			h.AcknowledgedAt, h.Acknowledger = s.o.Now(), actor.Name
		}
		return h, mine && h == p.Handling, nil
	})
}

// Snooze hides a problem until a time, or until it has a count. It ends an acknowledgement.
func (s *Service) Snooze(ctx context.Context, c Change, until time.Time, count int64) (Problem, error) {
	if err := s.checkSnooze(until, count); err != nil {
		return Problem{}, err
	}
	return s.change(ctx, c, audit.ProblemSnooze, "", func(p Problem) (Handling, bool, error) {
		if count > 0 && count <= p.Count {
			return Handling{}, false, apperror.New(apperror.Invalid, apperror.InvalidArgument,
				"problem %s has the count %d already; snooze it until a greater one", c.ID,
				p.Count).WithField("until_count", "must be greater than %d", p.Count)
		}
		if count > 0 && !p.Counted() {
			return Handling{}, false, apperror.New(apperror.Invalid, apperror.InvalidArgument,
				"problem %s has no count; snooze it until a time", c.ID).WithField("until_count", "the problem has no count")
		}
		h := p.Handling
		h.AcknowledgedAt, h.Acknowledger, h.SnoozeUntil, h.SnoozeCount = time.Time{}, "", until, count
		return h, p.AcknowledgedAt.IsZero() && p.SnoozeUntil.Equal(until) && p.SnoozeCount == count, nil
	})
}

func (s *Service) checkSnooze(until time.Time, count int64) error {
	now := s.o.Now()
	invalid := func(field, format string, args ...any) error {
		text := fmt.Sprintf(format, args...)
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, "the problem was not snoozed: %s %s", field,
			text).WithField(field, "%s", text)
	}
	switch {
	case until.IsZero() == (count == 0):
		return invalid("until", "or until_count is required, and not both")
	case count < 0:
		return invalid("until_count", "is negative")
	case !until.IsZero() && !until.After(now):
		return invalid("until", "is not in the future")
	case until.Sub(now) > maxSnooze:
		return invalid("until", "is more than %d days ahead", int(maxSnooze.Hours())/hoursADay)
	}
	return nil
}

// Update sets the owner and the note of a problem. A nil text stays as it is.
func (s *Service) Update(ctx context.Context, c Change, owner, note *string) (Problem, error) {
	if owner == nil && note == nil {
		return Problem{}, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"the update of problem %q changes nothing: set owner or note", c.ID)
	}
	why := ""
	if note != nil {
		why = *note
		if err := checkText("note", *note, maxNote); err != nil {
			return Problem{}, err
		}
	}
	if owner != nil {
		if err := checkText("owner", *owner, maxOwner); err != nil {
			return Problem{}, err
		}
	}
	return s.change(ctx, c, audit.ProblemUpdate, why, func(p Problem) (Handling, bool, error) {
		h := p.Handling
		if owner != nil {
			h.Owner = *owner
		}
		if note != nil {
			h.Note = *note
		}
		return h, h == p.Handling, nil
	})
}

// Reopen ends the acknowledgement or the snooze of a problem.
func (s *Service) Reopen(ctx context.Context, c Change) (Problem, error) {
	return s.change(ctx, c, audit.ProblemReopen, "", func(p Problem) (Handling, bool, error) {
		h := Handling{Owner: p.Owner, Note: p.Note}
		return h, h == p.Handling, nil
	})
}

func checkText(field, text string, most int) error {
	if len(text) > most {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, "%s has %d bytes, more than %d", field, len(text),
			most).
			WithField(field, "has more than %d bytes", most)
	}
	return nil
}

// change writes what decide returns about a problem. decide also reports whether nothing changes, which needs no
// current revision.
func (s *Service) change(
	ctx context.Context, c Change, action, reason string, decide func(Problem) (h Handling, done bool, err error),
) (Problem, error) {
	for range attempts {
		p, err := s.allowed(ctx, c.ID)
		if err != nil {
			return Problem{}, err
		}
		h, done, err := decide(p)
		if err != nil {
			return Problem{}, err
		}
		if !done {
			if c.Revision != p.Revision {
				return Problem{}, changed(p, c.Revision)
			}
			written, err := s.write(ctx, &p, h, action, reason)
			if err != nil {
				return Problem{}, err
			}
			if !written {
				continue // another operator, or the recorder, was faster
			}
		}
		return s.withSamples(ctx, p)
	}
	return Problem{}, apperror.New(apperror.Refused, apperror.ProblemChanged,
		"problem %s is being changed; read it again, then repeat the call", c.ID)
}

// allowed returns a problem that exists and that the caller may change.
func (s *Service) allowed(ctx context.Context, id string) (Problem, error) {
	p, err := s.get(ctx, id)
	if err != nil {
		return p, err
	}
	if err := auth.Require(ctx, cmp.Or(p.Project, auth.Everywhere), auth.Operator); err != nil {
		return p, err
	}
	if p.State == Resolved {
		return p, apperror.New(apperror.Refused, apperror.ProblemResolved, "problem %s is resolved; nothing was changed", id)
	}
	return p, nil
}

// changed returns the error for a caller that has read an older revision.
func changed(p Problem, revision int64) error {
	what := "its state is " + string(p.State)
	if p.State == Acknowledged {
		what = fmt.Sprintf("%s acknowledged it at %s", p.Acknowledger, p.AcknowledgedAt.UTC().Format(time.RFC3339))
	}
	return apperror.New(apperror.Refused, apperror.ProblemChanged,
		"problem %s was changed since revision %d, and has revision %d: %s; read it again, then decide", p.ID, revision,
		p.Revision, what)
}

// write stores what is done about a problem, and updates it.
func (s *Service) write(ctx context.Context, p *Problem, h Handling, action, reason string) (bool, error) {
	now := s.o.Now()
	next := *p
	next.Handling, next.Revision = h, p.Revision+1
	if next.SeenAt.IsZero() {
		next.SeenAt = now
	}
	next.State = next.stateAt(now)
	entry := audit.NewEntry(ctx, now, action, p.Project, p.ID, reason)
	facts := map[string]any{"code": p.Code, "count": p.Count, "state": next.State}
	if h.Owner != p.Owner {
		facts["owner"] = h.Owner
	}
	if next.State == Snoozed && !h.SnoozeUntil.IsZero() {
		facts["until"] = h.SnoozeUntil
	}
	if next.State == Snoozed && h.SnoozeCount > 0 {
		facts["untilCount"] = h.SnoozeCount
	}
	entry.Detail, _ = json.Marshal(facts) //nolint:errchkjson // texts, numbers and times always encode
	written, err := s.o.Store.Handle(ctx, Record{
		Finding: next.Finding, Handling: h, FirstSeen: next.SeenAt, LastSeen: now, Revision: next.Revision,
	}, p.storedRevision, !p.recorded, entry)
	if err != nil || !written {
		return false, err
	}
	if p.State != Acknowledged && next.State == Acknowledged {
		s.o.Metrics.Acknowledged(ctx, string(p.Code), max(0, now.Sub(next.SeenAt)))
	}
	next.recorded, next.storedRevision = true, next.Revision
	*p = next
	return true, nil
}
