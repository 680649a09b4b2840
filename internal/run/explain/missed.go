package explain

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/dsl/taskindex"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/cloudevents"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Bounds of what is compared.
const (
	// mostListeners is the number of listeners that are compared with an event: those that began to wait last.
	mostListeners = 500
	// MostMissed is the number of listen tasks that are returned for an event.
	MostMissed = 20
	// mostNear is the number of events that are returned for a listen task, mostRead the number of those that are read,
	// because a filter may have a pattern for the type, and mostNearTasks the number of tasks that have such events.
	mostNear      = 3
	mostRead      = 20
	mostNearTasks = 10
	// maxValue is the number of characters of a value in a reason.
	maxValue = 80
)

// Listening is a listener of an open run.
type Listening struct {
	event.Listener

	Workflow, Version string
	// Start is the position after which the run takes events.
	Start int64
}

// Missed is a listen task of an open run that has not taken an event.
type Missed struct {
	RunID, Workflow, Version string
	// Step and Task are those of the listen task, Since is when it began to wait. They are zero where its step is not
	// recorded yet.
	Step  int64
	Task  string
	Since time.Time
	// Reason is why the task has not taken the event.
	Reason string
}

// Near is an event of an awaited type that a listen task has not taken.
type Near struct {
	Position         int64
	ID, Source, Type string
	ReceivedAt       time.Time
	Reason           string
}

// Missed returns the listen tasks of open runs that can match events of an event's type and have not taken the event,
// those first that are nearest to a match. more reports whether there are further ones. deliveries are the event's.
func (s *Service) Missed(ctx context.Context, e event.Event,
	deliveries []event.Delivery) (list []Missed, more bool, err error) {
	listening, err := s.opts.Store.Listening(ctx, e.Project, e.Type, mostListeners+1)
	if err != nil || len(listening) == 0 {
		return nil, false, err
	}
	if more = len(listening) > mostListeners; more {
		listening = listening[:mostListeners]
	}
	listening = slices.DeleteFunc(listening, func(l Listening) bool {
		return slices.ContainsFunc(deliveries, func(d event.Delivery) bool { return d.Listener == l.ID })
	})
	events, err := s.opts.Events.EventsAt(ctx, e.Project, []int64{e.Position})
	if err != nil || len(events) == 0 {
		return nil, false, err
	}
	compiler := jq.NewCompiler()
	opened, asListeners := s.opts.Redactor.OpenToCompare(events, listenersOf(listening))
	plain := plainOf(opened[0])
	compared := make([]comparison, 0, len(listening))
	for i, l := range listening {
		if c := compare(compiler, plain, asListeners[i]); c.concerned() {
			c.Listening, c.deliveries = l, deliveries
			compared = append(compared, c)
		}
	}
	slices.SortStableFunc(compared, func(a, b comparison) int { return cmp.Compare(a.unmet(), b.unmet()) })
	if len(compared) > MostMissed {
		compared, more = compared[:MostMissed], true
	}
	for i := range compared {
		one, err := s.missed(ctx, e, compared[i])
		if err != nil {
			return nil, false, err
		}
		list = append(list, one)
	}
	return list, more, nil
}

func listenersOf(listening []Listening) []event.Listener {
	list := make([]event.Listener, len(listening))
	for i, l := range listening {
		list[i] = l.Listener
	}
	return list
}

// missed returns the result of a comparison for a listen task.
func (s *Service) missed(ctx context.Context, e event.Event, c comparison) (Missed, error) {
	m := Missed{RunID: c.RunID, Workflow: c.Workflow, Version: c.Version}
	page := Page{Limit: Most, Key: func(path string) string { return s.opts.Key(c.RunID, path) }}
	rows, err := s.opts.Store.Pending(ctx, c.Project, c.RunID, page)
	if err != nil {
		return m, err
	}
	pointer := ""
	for i := range rows.Steps {
		if t := &rows.Steps[i]; page.Key(t.Path) == c.ID {
			m.Step, m.Task, m.Since, pointer = t.Number, t.Task, t.StartedAt, t.Pointer
		}
	}
	if c.matches() {
		r, err := s.opts.Runs.Get(ctx, c.Project, c.RunID)
		if err != nil {
			return m, err
		}
		var task *dsl.Task
		if doc := s.document(ctx, r); doc != nil {
			task = taskindex.Of(doc)[pointer]
		}
		m.Reason = c.notTaken(e, task, m.Since)
		return m, nil
	}
	shown, err := s.opts.Redactor.Listeners(ctx, c.RunID, []event.Listener{c.Listener})
	if err != nil {
		return m, err
	}
	m.Reason = c.reason(e, shown[0])
	return m, nil
}

// near adds to the waits of a run the newest events that their listen tasks have not taken. stored and shown are the
// same listeners.
func (s *Service) near(ctx context.Context, r run.Run, doc *dsl.Document, stored, shown []event.Listener,
	waits []Wait) error {
	var tasks map[string]*dsl.Task
	if doc != nil {
		tasks = taskindex.Of(doc)
	}
	compiler := jq.NewCompiler()
	left := mostNearTasks
	for i := range waits {
		w := &waits[i]
		if w.Kind != run.WaitingEvent || left == 0 {
			continue
		}
		key := s.opts.Key(r.ID, w.Path)
		at := slices.IndexFunc(shown, func(l event.Listener) bool { return l.ID == key })
		if at < 0 {
			continue
		}
		left--
		list, start, err := s.opts.Store.NotTaken(ctx, r.Project, r.ID, shown[at].Spec.Types(), mostRead)
		if err != nil {
			return err
		}
		opened, listeners := s.opts.Redactor.OpenToCompare(list, stored[at:at+1])
		for n, e := range list {
			c := compare(compiler, plainOf(opened[n]), listeners[0])
			if !c.concerned() || len(w.Near) == mostNear {
				continue
			}
			c.Listening = Listening{Listener: listeners[0], Start: start}
			var reason string
			if c.matches() {
				reason = c.notTaken(e, tasks[w.Pointer], w.Since)
			} else {
				reason = c.reason(e, shown[at])
			}
			w.Near = append(w.Near, Near{
				Position: e.Position, ID: e.ID, Source: e.Source, Type: e.Type, ReceivedAt: e.ReceivedAt, Reason: reason,
			})
		}
	}
	return nil
}

// comparison is a listener with the conditions that an event does not meet.
type comparison struct {
	Listening

	deliveries []event.Delivery
	// filters are the filters for the type of the event, with their unmet conditions.
	filters []unmetFilter
	every   bool
}

type unmetFilter struct {
	index      int
	matcher    *eventfilter.Matcher
	conditions []string
	// absent are those of the conditions for which the opened event has no value.
	absent []string
	// invalid is why the filter cannot be evaluated; empty where it can.
	invalid string
}

// compare compares an opened event, as a plain value, with an opened listener.
func compare(compiler *jq.Compiler, plain map[string]any, l event.Listener) comparison {
	c := comparison{every: len(l.Spec.Filters) == 0}
	for i, f := range l.Spec.Filters {
		one := unmetFilter{index: i}
		m, err := eventfilter.Compile(f, compiler)
		if err != nil {
			one.invalid = err.Error()
			c.filters = append(c.filters, one)
			continue
		}
		one.matcher, one.conditions = m, m.Unmet(plain)
		for _, name := range one.conditions {
			if m.Value(name, plain) == nil {
				one.absent = append(one.absent, name)
			}
		}
		if !slices.Contains(one.conditions, "type") {
			c.filters = append(c.filters, one)
		}
	}
	return c
}

func plainOf(e event.Event) map[string]any {
	value, err := jq.DecodeJSON(cloudevents.JSON(e))
	if err != nil {
		return nil
	}
	plain, _ := value.(map[string]any)
	return plain
}

// concerned reports whether the task awaits events of the type.
func (c comparison) concerned() bool { return c.every || len(c.filters) > 0 }

func (c comparison) matches() bool {
	return c.every || slices.ContainsFunc(c.filters, func(f unmetFilter) bool {
		return f.invalid == "" && len(f.conditions) == 0
	})
}

// unmet returns the least number of unmet conditions of a filter.
func (c comparison) unmet() int {
	if c.every {
		return 0
	}
	least := slices.MinFunc(c.filters, func(a, b unmetFilter) int { return cmp.Compare(a.count(), b.count()) })
	return least.count()
}

func (f unmetFilter) count() int {
	if f.invalid != "" {
		return 1
	}
	return len(f.conditions)
}

// reason names the unmet conditions, with both values, as far as they may be shown.
func (c comparison) reason(e event.Event, shown event.Listener) string {
	plain := plainOf(e)
	var parts []string
	for _, f := range c.filters {
		text := "its filter cannot be evaluated: " + short(f.invalid)
		if f.invalid == "" {
			var unmet []string
			for _, name := range f.conditions {
				unmet = append(unmet, condition(name, shown.Spec.Filters[f.index], f.matcher.Value(name, plain),
					slices.Contains(f.absent, name)))
			}
			text = strings.Join(unmet, ", and ")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; or ")
}

// condition describes an unmet condition of a filter. value is that of the event, as it may be shown; absent reports
// that it has none.
func condition(name string, f event.Filter, value any, absent bool) string {
	given := valueText(value)
	key, isKey := eventfilter.KeyOf(name)
	if !isKey {
		wanted := wantedText(f.With[name])
		switch {
		case absent:
			return fmt.Sprintf("the event has no %s, the task requires %s", name, wanted)
		case value == nil || given == wanted:
			return fmt.Sprintf("its %s differs; the values are hidden", name)
		default:
			return fmt.Sprintf("its %s is %s, the task requires %s", name, given, wanted)
		}
	}
	k := f.Correlate[key]
	switch {
	case absent:
		return fmt.Sprintf("the event has no correlation key %s: %s gives no value", key, k.From)
	case k.Expect == nil || value == nil || given == excerptOf(string(k.Expect)):
		return fmt.Sprintf("its correlation key %s differs; the values are hidden", key)
	default:
		return fmt.Sprintf("its correlation key %s is %s, the task requires %s", key, given, excerptOf(string(k.Expect)))
	}
}

// wantedText returns a condition as the document has it.
func wantedText(v event.Value) string {
	switch {
	case v.Expr != "":
		return "${ " + excerptOf(v.Expr) + " }"
	case v.Members != nil:
		var members []string
		for _, name := range slices.Sorted(maps.Keys(v.Members)) {
			members = append(members, name+": "+wantedText(v.Members[name]))
		}
		return excerptOf("{" + strings.Join(members, ", ") + "}")
	}
	return excerptOf(string(v.Literal))
}

func valueText(value any) string {
	text, err := jq.EncodeJSON(value)
	if err != nil {
		return "unreadable"
	}
	return excerptOf(string(text))
}

// excerptOf truncates a text to maxValue characters.
func excerptOf(text string) string { return truncated(text, maxValue) }

// notTaken returns why a task has not taken an event that its filter matches. task and since are those of the task,
// where they are known.
func (c comparison) notTaken(e event.Event, task *dsl.Task, since time.Time) string {
	for _, d := range c.deliveries {
		switch {
		case d.RunID != c.RunID:
		case d.Kind == event.Start:
			return "it started the run, which takes each event once"
		default:
			return "the run has taken it already, in another task"
		}
	}
	if e.Position > c.Since {
		if e.Status == event.Pending {
			return "it matches, and is not routed yet"
		}
		return "it matches, and no delivery is recorded"
	}
	before := ""
	if !since.IsZero() && since.After(e.ReceivedAt) {
		before = since.Sub(e.ReceivedAt).Round(time.Millisecond).String() + " "
	}
	switch {
	case e.Position <= c.Start:
		return "it arrived before the run started"
	case task != nil && task.IgnoresEarlier():
		return fmt.Sprintf("it arrived %sbefore the task began to wait, which takes only later events (%s: %s)", before,
			dsl.SinceKey, dsl.SinceListen)
	}
	return "it arrived " + before +
		"before the task began to wait, and was not looked through: see the warnings of the run"
}
