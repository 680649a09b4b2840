package flow

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// SensitiveTracker collects the texts that occurred at sensitive places of a run, from the same records that rows are
// made of. Values that leave the run thus carry the sensitive texts in them before there is a row, and the same ones in
// every process.
//
//	t := NewSensitiveTracker(policy, given)  // once per execution
//	t.Observe(run, steps)                    // with the machine's records, before its effects are performed
//	t.In(event)                              // the sensitive texts in a value that is passed on
//	given = t.Carried(room)                  // for the next execution
//
// It decides no command: its behaviour may change between releases without an effect on histories.
//
// A tracker belongs to one execution. It is not safe for concurrent use.
type SensitiveTracker struct {
	policy  *redact.Policy
	secrets redact.SecretSet
	texts   []string // of secrets, in the order of their discovery
	given   redact.Inherited
	large   []*large // the last ones
}

// large is a value that is too large for a record, with the result of its search: a loop has the same value in each of
// its steps.
type large struct {
	at       redact.Location
	of       any
	encoded  json.RawMessage // its JSON, while the records that hold it are searched; nil until it is needed
	searched int             // the number of texts at its last search
	shown    json.RawMessage // nil if nothing in it must be redacted
}

// json encodes the value, once for each call of Observe. It returns nil for a value that JSON cannot represent.
func (v *large) json() json.RawMessage {
	if v.encoded == nil {
		v.encoded, _ = jq.EncodeJSON(v.of) // if encoding fails, a record holds only the error
	}
	return v.encoded
}

// maxLarge is the number of large values that are remembered, for the steps of a loop's body.
const maxLarge = 8

// NewSensitiveTracker returns a tracker for a run with a policy, and with the values that it inherited.
func NewSensitiveTracker(policy *redact.Policy, given redact.Inherited) *SensitiveTracker {
	t := &SensitiveTracker{policy: policy, given: given}
	t.Add(given.Texts...)
	return t
}

// Input adds the texts at sensitive places of the run's input.
func (t *SensitiveTracker) Input(v json.RawMessage) {
	_, found := t.policy.Value(redact.Location{}, v, nil)
	t.Add(found...)
}

// Add adds texts.
func (t *SensitiveTracker) Add(texts ...string) {
	t.texts = append(t.texts, t.secrets.Add(texts...)...)
}

// Observe adds the texts at sensitive places of records.
func (t *SensitiveTracker) Observe(run *interp.RunRecord, steps []interp.StepRecord) {
	value := func(at redact.Location, v json.RawMessage) {
		_, found := t.policy.Value(at, v, nil)
		t.Add(found...)
	}
	var cut []func()
	for i := range steps {
		s := &steps[i]
		input, output := redact.Location{Pointer: s.Pointer, Task: s.Task},
			redact.Location{Pointer: s.Pointer, Task: s.Task, Output: true}
		if s.InputSize == 0 {
			value(input, s.Input)
		}
		if s.OutputSize == 0 {
			value(output, s.Output)
		}
		if wholeInput, wholeOutput := s.FullPayloads(); wholeInput != nil || wholeOutput != nil {
			in, out := t.remember(input, wholeInput), t.remember(output, wholeOutput)
			cut = append(cut, func() { s.InputShown, s.OutputShown = t.show(in), t.show(out) })
		}
	}
	if run != nil {
		value(redact.Location{Output: true}, run.Output)
	}
	for _, show := range cut {
		show()
	}
	for _, v := range t.large {
		v.encoded = nil // keep the value, not its JSON
	}
}

// remember searches a value that is too large for a record. It returns nil for nil.
func (t *SensitiveTracker) remember(at redact.Location, v any) *large {
	if v == nil {
		return nil
	}
	for _, earlier := range t.large {
		if earlier.at == at && interp.Identical(earlier.of, v) {
			return earlier
		}
	}
	this := &large{at: at, of: v, searched: -1}
	if t.policy.MayHide(at, v, nil) {
		_, found := t.policy.Value(at, this.json(), nil)
		t.Add(found...)
	}
	t.large = append(t.large, this)
	if len(t.large) > maxLarge {
		t.large = slices.Delete(t.large, 0, 1)
	}
	return this
}

// show returns a large value shortened and with the marks of redaction in it, or nil if there are none. Marks are
// inserted before the value is cut: half of a text would not be found.
func (t *SensitiveTracker) show(v *large) json.RawMessage {
	if v == nil {
		return nil
	}
	if v.searched == len(t.texts) {
		return v.shown
	}
	v.searched, v.shown = len(t.texts), nil
	if !t.policy.MayHide(v.at, v.of, &t.secrets) {
		return nil
	}
	encoded := v.json()
	shown, _ := t.policy.Value(v.at, encoded, &t.secrets)
	if bytes.Equal(shown, encoded) {
		return nil
	}
	if value, err := jq.DecodeJSON(shown); err == nil {
		v.shown = interp.Shorten(value)
	}
	return v.shown
}

// All returns every text. The returned list is never modified, only replaced by a longer one.
func (t *SensitiveTracker) All() []string { return slices.Clip(t.texts) }

// In returns the sensitive texts that occur in a value.
func (t *SensitiveTracker) In(value json.RawMessage) []string { return t.secrets.In(value) }

// Carried returns the state for the next execution, in approximately room bytes. Texts that do not fit are in the rows,
// from which the writer of further rows reads them.
func (t *SensitiveTracker) Carried(room int) redact.Inherited {
	next := t.given
	next.Texts = nil
	for _, text := range t.texts {
		const overhead = 8 // of a text in JSON
		if room -= len(text) + overhead; room < 0 {
			break
		}
		next.Texts = append(next.Texts, text)
	}
	return next
}
