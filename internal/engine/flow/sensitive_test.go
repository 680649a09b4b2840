package flow_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// The receiver of an event gets the sensitive texts of the run's steps with it, also after the run has continued as
// new.
func TestSentValuesCarryTheirSensitiveTexts(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `
do:
  - get: {set: {token: '${ .word + "-1" }', other: {password: not-sent}, n: 1}}
  - tell: {emit: {event: {with: {type: told, data: {note: '${ "it is " + .token }'}}}}}
  - plain: {emit: {event: {with: {type: told, data: {note: nothing}}}}}
  - rest: {wait: {hours: 1}}
  - again: {emit: {event: {with: {type: told, data: {note: planted-word-1}}}}}`, `{"word":"planted-word"}`)
	b.limits.SoftEvents = 8
	_, err := b.run()
	require.NoError(t, err)
	require.Len(t, b.emits, 3)
	require.Equal(t, []string{"planted-word-1"}, b.emits[0].Sensitive)
	require.Empty(t, b.emits[1].Sensitive)
	require.Equal(t, []string{"planted-word-1"}, b.emits[2].Sensitive)
	require.ElementsMatch(t, []string{"not-sent", "planted-word-1"}, b.recorder.sensitive)
	require.Positive(t, b.input.Chain)
}

func TestReceivedSensitiveTextsAreRedacted(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `
do:
  - l: {listen: {to: {any: []}}}
  - tell: {emit: {event: {with: {type: told, data: {note: planted-in-event, more: inherited-word}}}}}`, ``)
	b.input.Sensitive.Texts = []string{"inherited-word"}
	b.began = func() {
		b.env.RegisterDelayedCallback(func() {
			b.env.SignalWorkflow(contract.WakeSignal, flow.Wake{
				Listener: b.listens[0].Listener, Position: 1, Event: json.RawMessage(`{"data": 1}`),
				Sensitive: []string{"planted-in-event"},
			})
		}, time.Second)
	}
	_, err := b.run()
	require.NoError(t, err)
	require.Equal(t, []string{"inherited-word", "planted-in-event"}, b.emits[0].Sensitive)

	n := newFakeChildren(t, `
input: {schema: {document: {type: object, properties: {n: {writeOnly: true}}}}}
do: [{r: {`+subflow+`}}, {e: {emit: {event: {with: {type: told, data: {note: planted-in-child}}}}}}]`)
	n.b.input.Input = json.RawMessage(`{"n": "planted-number"}`)
	n.ended = func(flow.ChildRequest) *flow.ChildEnded {
		return &flow.ChildEnded{Status: "completed", Output: json.RawMessage(`1`), Sensitive: []string{"planted-in-child"}}
	}
	_, err = n.b.run()
	require.NoError(t, err)
	require.Equal(t, []string{"planted-number"}, n.started[0].Sensitive)
	require.Equal(t, []string{"planted-in-child"}, n.b.emits[0].Sensitive)
}

// The beginning of a value that is too large to be stored is recorded. Sensitive texts in it are marked before it is
// cut.
func TestLargeValuesAreRedactedBeforeTheyAreCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 20<<10)
	b := newTestRun(t, `
do:
  - large: {set: {a: {pin: '12', password: abc}, z: '`+long+`', zz: {secret: planted-at-the-end}}}
  - tell: {emit: {event: {with: {type: told, data: {note: planted-at-the-end}}}}}
  - small: {set: {n: 1}}`, ``)
	_, err := b.run()
	require.NoError(t, err)
	require.Equal(t, []string{"planted-at-the-end"}, b.emits[0].Sensitive)
	large := b.recorder.steps[1]
	require.Greater(t, large.OutputSize, 20<<10)
	require.Contains(t, string(large.Output), `"password":"abc"`)
	require.Contains(t, string(large.OutputShown), `"password":"`+redact.Mark)
	require.Contains(t, string(large.OutputShown), `"pin":"12"`)
	require.Contains(t, string(large.OutputShown), `"zz":{"secret":"`+redact.Mark)
	require.NotContains(t, string(large.OutputShown), "abc")
	require.Equal(t, large.OutputShown, b.recorder.steps[2].InputShown, "the next one begins with it")
	require.Nil(t, b.recorder.steps[3].OutputShown)
}
