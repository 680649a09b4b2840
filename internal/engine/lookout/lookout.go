// Package lookout knows what has stood at sensitive places of a run, by the same records that rows are made of: so what leaves the run is
// told with what is sensitive in it before there is a row, and the same in whatever process.
//
//	l := lookout.New(policy, given)  // once per execution
//	l.Look(run, steps)               // with the machine's records, before its effects are performed
//	l.In(event)                      // what comes up in a value that is passed on
//	given = l.Carried(room)          // for the next execution
//
// It decides no command: its work may change from release to release without a history noticing.
package lookout

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// Lookout is that of one execution. It is not safe for concurrent use.
type Lookout struct {
	policy *redact.Policy
	taint  redact.Taint
	texts  []string // of taint, in the order in which they were found
	given  redact.Inherited
	large  []*large // the last ones
}

// large is a value that is too large for a record, and what was found about it: a loop has the same one in each of its steps.
type large struct {
	at      redact.Place
	of      any
	encoded json.RawMessage // its JSON, while the records that hold it are searched; nil while nothing required it
	known   int             // how many texts there were when it was looked at
	shown   json.RawMessage // nil where nothing in it is to be hidden
}

// json encodes the value, once for each call of Look. What JSON cannot hold is nil.
func (v *large) json() json.RawMessage {
	if v.encoded == nil {
		v.encoded, _ = jq.EncodeJSON(v.of) // of a value that does not encode, no record holds more than the error
	}
	return v.encoded
}

// maxLarge is how many large values are remembered: those of the steps of a loop's body. They are large.
const maxLarge = 8

// New returns a lookout for a run with a policy, and with what it was given beside.
func New(policy *redact.Policy, given redact.Inherited) *Lookout {
	l := &Lookout{policy: policy, given: given}
	l.Learn(given.Texts...)
	return l
}

// Input takes what stands at sensitive places of the run's input.
func (l *Lookout) Input(v json.RawMessage) {
	_, found := l.policy.Value(redact.Place{}, v, nil)
	l.Learn(found...)
}

// Learn adds texts.
func (l *Lookout) Learn(texts ...string) { l.texts = append(l.texts, l.taint.Add(texts...)...) }

// Look takes what stands at sensitive places of records.
func (l *Lookout) Look(run *interp.RunRecord, steps []interp.StepRecord) {
	value := func(at redact.Place, v json.RawMessage) {
		_, found := l.policy.Value(at, v, nil)
		l.Learn(found...)
	}
	var cut []func()
	for i := range steps {
		s := &steps[i]
		input, output := redact.Place{Pointer: s.Pointer, Task: s.Task}, redact.Place{Pointer: s.Pointer, Task: s.Task, Output: true}
		value(input, s.Input)
		value(output, s.Output)
		if wholeInput, wholeOutput := s.Whole(); wholeInput != nil || wholeOutput != nil {
			in, out := l.remember(input, wholeInput), l.remember(output, wholeOutput)
			cut = append(cut, func() { s.InputShown, s.OutputShown = l.show(in), l.show(out) })
		}
	}
	if run != nil {
		value(redact.Place{Output: true}, run.Output)
	}
	for _, show := range cut {
		show()
	}
	for _, v := range l.large {
		v.encoded = nil // the value itself is kept, not a second form of it
	}
}

// remember learns from a value that is too large for a record; nil for none.
func (l *Lookout) remember(at redact.Place, v any) *large {
	if v == nil {
		return nil
	}
	for _, known := range l.large {
		if known.at == at && same(known.of, v) {
			return known
		}
	}
	this := &large{at: at, of: v, known: -1}
	if l.policy.MayHide(at, v, nil) {
		_, found := l.policy.Value(at, this.json(), nil)
		l.Learn(found...)
	}
	l.large = append(l.large, this)
	if len(l.large) > maxLarge {
		l.large = slices.Delete(l.large, 0, 1)
	}
	return this
}

// same tells whether two values are one, without a look into them: none is ever changed.
func same(a, b any) bool {
	switch a := a.(type) {
	case string:
		return a == b
	case []any:
		other, ok := b.([]any)
		return ok && len(a) > 0 && len(a) == len(other) && &a[0] == &other[0]
	case map[string]any:
		other, ok := b.(map[string]any)
		return ok && reflect.ValueOf(a).Pointer() == reflect.ValueOf(other).Pointer()
	default:
		return false
	}
}

// show is the beginning of a large value with marks in it; nil where there are none. Marks are put in before it is cut: half of a text
// would not be found.
func (l *Lookout) show(v *large) json.RawMessage {
	if v == nil {
		return nil
	}
	if v.known == len(l.texts) {
		return v.shown
	}
	v.known, v.shown = len(l.texts), nil
	if !l.policy.MayHide(v.at, v.of, &l.taint) {
		return nil
	}
	encoded := v.json()
	shown, _ := l.policy.Value(v.at, encoded, &l.taint)
	if bytes.Equal(shown, encoded) {
		return nil
	}
	if value, err := jq.DecodeJSON(shown); err == nil {
		v.shown = interp.Preview(value)
	}
	return v.shown
}

// All returns every text. The list is never changed, only replaced by a longer one.
func (l *Lookout) All() []string { return slices.Clip(l.texts) }

// In returns the texts that come up in a value.
func (l *Lookout) In(value json.RawMessage) []string { return l.taint.In(value) }

// Carried is what the next execution begins with, in about room bytes. What finds none is in the rows, from which whoever writes
// further ones knows it.
func (l *Lookout) Carried(room int) redact.Inherited {
	next := l.given
	next.Texts = nil
	for _, text := range l.texts {
		const around = 8 // of a text in JSON
		if room -= len(text) + around; room < 0 {
			break
		}
		next.Texts = append(next.Texts, text)
	}
	return next
}
