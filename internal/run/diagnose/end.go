package diagnose

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// endingWindow is the time over which endings are counted. minEndings is how many of a project are always allowed in
	// it. endingShare allows one in a hundred of the project's open runs where that is more.
	endingWindow = time.Hour
	minEndings   = 10
	endingShare  = 100
)

// EventPoisonLimit is the type of the event that a project has more poison runs than the limit, so that none of them is
// ended. There is at most one in an hour.
const EventPoisonLimit = event.Own + "project.poison_limit"

// EndingRequest requests permission to end runs of a project.
type EndingRequest struct {
	Project string
	RunIDs  []string
	At      time.Time
	// Since is the beginning of the window over which endings are counted.
	Since time.Time
	// Limit returns how many runs of a project with the given number of open runs may be ended in the window.
	Limit func(open int64) int64
	// Exceeded returns the event of an exceeded limit: poison is how many runs would have been ended in the window.
	Exceeded func(poison, limit int64) event.Event
}

// Endings is the response to an [EndingRequest]. Granted are the runs that may be ended; a permission of an earlier
// request remains valid.
type Endings struct {
	Granted []string
	// Exceeded reports that the limit is exceeded. Wake reports that the event was committed and the project's dispatcher
	// is parked.
	Exceeded, Wake bool
}

// endPoison ends poison runs in projects that set end_poison. Their verdicts are at least one pass old, so that they
// were visible.
func (p *pass) endPoison(ctx context.Context) {
	if p.w.opts.End == nil {
		return
	}
	ctx = auth.WithActor(ctx, auth.System())
	for _, name := range slices.Sorted(maps.Keys(p.poison)) {
		if err := p.endInProject(ctx, name, p.poison[name]); err != nil && ctx.Err() == nil {
			logger.FromContext(ctx).WarnContext(ctx, "Runs that are poison could not be ended; trying again", "project", name,
				"error", err)
		}
	}
}

func (p *pass) endInProject(ctx context.Context, name string, candidates []Candidate) error {
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
		Limit:    func(open int64) int64 { return max(minEndings, open/endingShare) },
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

// end ends one run, unless its current execution shows that it is no longer poison.
func (p *pass) end(ctx context.Context, c Candidate) {
	log := logger.FromContext(ctx)
	x, err := p.w.engine.Execution(ctx, c.ID)
	if err != nil {
		log.DebugContext(ctx, "Run that is poison could not be described", "run_id", c.ID, "error", err)
		return
	}
	d := Decide(p.described(c, x))
	if d.Action != Report || d.Verdict.Code != run.Poison {
		return
	}
	reason := fmt.Sprintf("poison: its workflow task fails with %s, without progress since %s; project %s ends such "+
		"runs (end_poison)",
		d.Verdict.Cause, d.Verdict.Since.UTC().Format(time.RFC3339), c.Project)
	if err := p.w.opts.End(ctx, c.Project, c.ID, reason); err != nil && !apperror.Is(err, apperror.RunEnded) {
		log.WarnContext(ctx, "Run that is poison could not be ended; trying again", "run_id", c.ID, "project", c.Project,
			"error", err)
		return
	}
	log.InfoContext(ctx, "Run that is poison was ended", "run_id", c.ID, "project", c.Project, "cause", d.Verdict.Cause)
}

// poisonLimit returns the event of an exceeded limit. Its ID contains the hour, so that the inbox keeps the first event
// of each hour.
func poisonLimit(name string, poison, limit int64, now time.Time) event.Event {
	data, _ := json.Marshal(map[string]any{ //nolint:errchkjson // texts and numbers always encode
		"project": name, "poison": poison, "limit": limit})
	return event.Event{
		Project: name, ID: "poison-limit-" +
			strconv.FormatInt(now.Truncate(endingWindow).Unix(), 10), Source: Source(name), Type: EventPoisonLimit,
		Subject: name, Time: now.UTC(), DataContentType: "application/json", Data: data, Actor: auth.System().Name,
		Status: event.Pending,
	}
}
