package annotation

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

const (
	// notifyEvery is the interval of the elected process's reads of outages, electEvery that of the attempts of others to
	// be elected.
	notifyEvery = time.Second
	electEvery  = 5 * time.Second
	// notifierLock is the name of the lock that elects one process.
	notifierLock = "connection events"
)

// NotifierOptions are the dependencies of a [Notifier].
type NotifierOptions struct {
	Outages Store
	// Projects returns the projects in which an event of a type may be received.
	Projects func(ctx context.Context, types ...string) ([]string, error)
	// List reads and Publish writes the events of a project.
	List    func(ctx context.Context, f event.ListFilter) ([]event.Event, error)
	Publish func(ctx context.Context, project string, events []event.Event) ([]event.Accepted, error)
	// Exclusive runs fn unless another process runs work of that name.
	Exclusive func(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error)
	Now       func() time.Time
}

// Notifier publishes an event in each project at the beginning and at the end of an outage, in one elected process. It
// needs no Temporal. What was published last is read from the events themselves, so that an outage is reported once,
// whichever process does so.
type Notifier struct {
	*loop.Loop

	o NotifierOptions
}

// NewNotifier returns a notifier.
func NewNotifier(o NotifierOptions) *Notifier {
	n := &Notifier{o: o}
	n.Loop = loop.New(n.poll)
	return n
}

func (n *Notifier) poll(ctx, _ context.Context) time.Duration {
	ctx = auth.WithActor(ctx, auth.System())
	_, err := n.o.Exclusive(ctx, notifierLock, func(ctx context.Context) error {
		for {
			if err := n.pass(ctx); err != nil || !loop.Sleep(ctx, notifyEvery) {
				return err
			}
		}
	})
	if err != nil && ctx.Err() == nil {
		logger.FromContext(ctx).WarnContext(ctx,
			"Events about the connection to Temporal could not be published; trying again", "error", err)
	}
	return electEvery
}

// pass publishes what has changed since the last event of each project.
func (n *Notifier) pass(ctx context.Context) error {
	projects, err := n.o.Projects(ctx, event.ConnectionDown, event.ConnectionUp)
	if err != nil || len(projects) == 0 {
		return err
	}
	now := n.o.Now()
	rows, err := n.o.Outages.ListOutages(ctx, now.Add(-defaultPeriod), now.Add(time.Second), MaxOfKind)
	if err != nil {
		return err
	}
	outages := merge(rows, now.Add(-defaultPeriod), now)
	if len(outages) == 0 {
		return nil
	}
	for _, project := range projects {
		if err := n.notify(ctx, project, outages[len(outages)-1], now); err != nil {
			return err
		}
	}
	return nil
}

// notify publishes the event that follows the last one of a project, if the newest outage requires it.
func (n *Notifier) notify(ctx context.Context, project string, newest Annotation, now time.Time) error {
	source := "/projects/" + project + "/connection"
	last, err := n.o.List(ctx, event.ListFilter{Project: project, Source: source, Limit: 1})
	if err != nil {
		return err
	}
	reported := len(last) > 0 && last[0].Type == event.ConnectionDown
	data := map[string]any{"project": project, "since": newest.Start.UTC(), "kind": newest.Detail}
	e := event.Event{Source: source, DataContentType: "application/json", Time: now.UTC(), Subject: newest.Subject}
	switch {
	case newest.End.IsZero() && !reported:
		e.Type, e.ID = event.ConnectionDown, "down-"+strconv.FormatInt(newest.Start.UnixMicro(), 10)
	case !newest.End.IsZero() && reported:
		// The start may differ from that of the event, because another server saw the outage earlier: the IDs are a pair.
		e.Type, e.ID = event.ConnectionUp, "up-after-"+last[0].ID
		data["durationSeconds"] = newest.End.Sub(newest.Start).Seconds()
		data["end"] = newest.End.UTC()
	default:
		return nil
	}
	if e.Data, err = json.Marshal(data); err != nil {
		return fmt.Errorf("encode an event about the connection: %w", err)
	}
	_, err = n.o.Publish(ctx, project, []event.Event{e})
	return err
}
