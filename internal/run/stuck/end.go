package stuck

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run/problem"
	"github.com/signalbox-dev/signalbox/internal/run/stuck/verdict"
)

const (
	// endingWindow is the time over which endings are counted, leastEndings how many of a project are always allowed in it, and
	// endingShare the part of its open runs that is allowed where that is more: one in a hundred.
	endingWindow = time.Hour
	leastEndings = 10
	endingShare  = 100
)

// EventPoisonLimit is the type of the event that a project has more poison than may be ended, so that nothing of it is. There is one in an
// hour at most.
const EventPoisonLimit = event.Own + "project.poison_limit"

// EndingRequest asks for permission to end runs of a project.
type EndingRequest struct {
	Project string
	RunIDs  []string
	At      time.Time
	// Since is the beginning of the window over which endings are counted.
	Since time.Time
	// Limit returns how many runs may be ended in the window, of a project with so many open runs.
	Limit func(open int64) int64
	// Exceeded makes the event of a limit that is exceeded: poison is how many runs would have been ended in the window.
	Exceeded func(poison, limit int64) event.Event
}

// Endings is the answer: the runs that may be ended. Those that got permission in an earlier request keep it.
type Endings struct {
	Granted []string
	// Exceeded says that the limit is exceeded. Wake says that the event was committed, and that the project's dispatcher is parked.
	Exceeded, Wake bool
}

// endings ends runs that are poison, in projects whose setting says so. A verdict is at least one pass old then, so that it was visible.
func (p *pass) endings(ctx context.Context) {
	if p.w.opts.End == nil {
		return
	}
	ctx = auth.WithActor(ctx, auth.System())
	for _, name := range slices.Sorted(maps.Keys(p.poison)) {
		if err := p.endIn(ctx, name, p.poison[name]); err != nil && ctx.Err() == nil {
			logger.FromContext(ctx).WarnContext(ctx, "Runs that are poison could not be ended; trying again", "project", name, "error", err)
		}
	}
}

func (p *pass) endIn(ctx context.Context, name string, candidates []Candidate) error {
	settings, err := p.w.platform.GetProject(ctx, name)
	if err != nil || !settings.Settings.EndPoison {
		return err
	}
	byID := make(map[string]Candidate, len(candidates))
	for _, c := range candidates {
		byID[c.ID] = c
	}
	answer, err := p.w.store.ReserveEndings(ctx, EndingRequest{
		Project: name, RunIDs: slices.Sorted(maps.Keys(byID)), At: p.now, Since: p.now.Add(-endingWindow),
		Limit:    func(open int64) int64 { return max(leastEndings, open/endingShare) },
		Exceeded: func(poison, limit int64) event.Event { return poisonLimit(name, poison, limit, p.now) },
	})
	if err != nil {
		return err
	}
	if answer.Exceeded {
		p.w.opts.Committed(ctx, name, answer.Wake)
	}
	for _, id := range answer.Granted {
		p.end(ctx, byID[id])
	}
	return nil
}

// end ends one run, unless Temporal shows now that it is no longer poison.
func (p *pass) end(ctx context.Context, c Candidate) {
	log := logger.FromContext(ctx)
	x, err := p.w.engine.Execution(ctx, c.ID)
	if err != nil {
		log.DebugContext(ctx, "Run that is poison could not be described", "run_id", c.ID, "error", err)
		return
	}
	d := verdict.Of(p.described(c, x))
	if d.Action != verdict.Give || d.Verdict.Code != problem.Poison {
		return
	}
	reason := fmt.Sprintf("poison: its workflow task fails with %s, without progress since %s; project %s ends such runs (end_poison)",
		d.Verdict.Cause, d.Verdict.Since.UTC().Format(time.RFC3339), c.Project)
	if err := p.w.opts.End(ctx, c.Project, c.ID, reason); err != nil && !fault.Is(err, fault.RunEnded) {
		log.WarnContext(ctx, "Run that is poison could not be ended; trying again", "run_id", c.ID, "project", c.Project, "error", err)
		return
	}
	log.InfoContext(ctx, "Run that is poison was ended", "run_id", c.ID, "project", c.Project, "cause", d.Verdict.Cause)
}

// poisonLimit is the event of a limit that is exceeded. Its ID is that of the hour: the inbox keeps the first.
func poisonLimit(name string, poison, limit int64, now time.Time) event.Event {
	data, _ := json.Marshal(map[string]any{"project": name, "poison": poison, "limit": limit}) //nolint:errchkjson // texts and numbers always encode
	return event.Event{
		Project: name, ID: "poison-limit-" + strconv.FormatInt(now.Truncate(endingWindow).Unix(), 10), Source: Source(name), Type: EventPoisonLimit,
		Subject: name, Time: now.UTC(), DataContentType: "application/json", Data: data, Actor: auth.System().Name, Status: event.Pending,
	}
}
