package interp

import (
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
)

// startEmit builds the event and requests its publication. Attributes that the document omits are derived from the run,
// so that a repetition is the same event: its ID from the path in the run, its time from the run's clock.
func (m *Machine) startEmit(f *frame, b *dsl.Emit) {
	fuel := m.fuel()
	event, err := b.Event(f.input, m.variables(f), fuel)
	m.spend(fuel.Used())
	if runError := expressionError(err, f.task.Pointer); runError != nil {
		m.fail(f, runError)
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
	m.recorder.markDirty(f.step)
	m.effects = append(m.effects,
		Emit{ID: f.call, StepNumber: f.step.number, Attempt: f.step.attempt, Key: key, Event: event})
}
