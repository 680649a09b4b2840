package interp

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// startEmit makes the event and asks for its publication. What the document leaves out is derived from the run, so that
// a repetition is the same event: its ID from the place in the run, its time from the run's clock.
func (m *Machine) startEmit(f *frame, b *dsl.Emit) {
	fuel := m.fuel()
	event, err := b.Event(f.input, m.variables(f), fuel)
	m.spend(fuel.Used())
	if err == nil {
		err = checkEvent(event)
	}
	if problem := expressionError(err, f.task.Pointer); problem != nil {
		m.fail(f, problem)
		return
	}
	key := callKey(m.start.RunID, f.key)
	for name, value := range map[string]any{
		"specversion": "1.0", "id": key, "source": m.start.Source, "time": m.now.Format(time.RFC3339Nano),
	} {
		if _, given := event[name]; !given {
			event[name] = value
		}
	}
	if _, typed := event["datacontenttype"]; !typed && event["data"] != nil {
		event["datacontenttype"] = "application/json"
	}
	f.call, f.emitted = EffectID(m.newID()), event
	m.calls[f.call] = f
	f.step.beginAttempt(1, m.now)
	m.book.mark(f.step)
	m.effects = append(m.effects, Emit{ID: f.call, StepNumber: f.step.number, Attempt: f.step.attempt, Key: key, Event: event})
}

// checkEvent refuses what expressions may give and no event can have.
func checkEvent(event map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(event)) {
		value := event[name]
		text, isText := value.(string)
		switch name {
		case "data":
			continue
		case "id", "source", "type", "subject", "datacontenttype", "dataschema", "time":
			if !isText || text == "" {
				return fmt.Errorf("the %s of an event must be a string that is not empty, got %s", name, jq.TypeName(value))
			}
			if _, err := time.Parse(time.RFC3339, text); name == "time" && err != nil {
				return fmt.Errorf("the time of an event must be a date and time such as 2026-01-31T08:00:00Z, got %.80q", text)
			}
		default:
			switch value.(type) {
			case []any, map[string]any:
				return fmt.Errorf("the %s of an event must be a string, a number or a boolean, got %s", name, jq.TypeName(value))
			}
		}
	}
	if _, typed := event["type"]; !typed {
		return fmt.Errorf("the type of an event must be a string that is not empty, got null")
	}
	return nil
}
