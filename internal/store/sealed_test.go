package store_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// noValues are the methods with parameters that could hold values of runs or events, but do not.
var noValues = map[string]string{
	"CaughtSteps": "reads by steps, and stores none",
	"Publish":     "takes a definition",
	"Webhooks.Finish": "takes the answer to a request whose body has marks in place of sensitive values, without " +
		"the secrets of the webhook",
	"Webhooks.InsertTest": "takes an event that the platform makes",
}

// A method that receives values of runs or events receives them sealed, so that none is stored in plain text. This test
// finds a new method that does not.
func TestValuesReachTheStoreSealed(t *testing.T) {
	t.Parallel()
	s := start(t, sqlite(t)).Store
	stores := map[string]reflect.Type{"": reflect.TypeOf(s)}
	for m := range reflect.TypeOf(s).Methods() {
		if m.Type.NumIn() == 1 && m.Type.NumOut() == 1 && m.Type.Out(0).Kind() == reflect.Pointer {
			stores[m.Name+"."] = m.Type.Out(0)
		}
	}
	require.Subset(t, slices.Collect(keysOf(stores)),
		[]string{"Events.", "Verdicts.", "Batches.", "Quotas.", "Originals.", "Awaited.", "Tokens."})
	var open []string
	var sealed int
	for prefix, of := range stores {
		for m := range of.Methods() {
			for p := range m.Type.NumIn() {
				if p == 0 || inTransaction(m.Type) {
					continue // the store itself
				}
				parameter := m.Type.In(p)
				if mayHoldValues(parameter, nil) {
					open = append(open, prefix+m.Name)
				} else if isSealed(parameter) {
					sealed++
				}
			}
		}
	}
	slices.Sort(open)
	var known []string
	for name := range noValues {
		known = append(known, name)
	}
	slices.Sort(known)
	require.Equal(t, known, slices.Compact(open), "take sealed.Sealed, or say in noValues why that is not necessary")
	require.Equal(t, 20, sealed)
}

func keysOf(m map[string]reflect.Type) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range m {
			if !yield(name) {
				return
			}
		}
	}
}

// inTransaction reports whether a method runs within a transaction, for other parts of the store alone.
func inTransaction(method reflect.Type) bool {
	return method.NumIn() > 2 && method.In(2) == reflect.TypeFor[sqldb.Conn]()
}

func isSealed(of reflect.Type) bool {
	if of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	return strings.HasPrefix(of.String(), "sealed.Sealed[")
}

// mayHoldValues reports whether a type holds values of runs or events that are not sealed. Audit entries describe
// actions of users.
func mayHoldValues(of reflect.Type, above []reflect.Type) bool {
	switch of {
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[run.Error](), reflect.TypeFor[event.Event](),
		reflect.TypeFor[diagnose.TaskFailure](),
		reflect.TypeFor[diagnose.Verdict](), reflect.TypeFor[event.Routing](), reflect.TypeFor[inbox.DeliveryOutcome](),
		reflect.TypeFor[batch.Item]():
		return true
	case reflect.TypeFor[audit.Entry]():
		return false
	}
	if isSealed(of) || slices.Contains(above, of) {
		return false
	}
	above = append(slices.Clip(above), of)
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return mayHoldValues(of.Elem(), above)
	case reflect.Struct:
		for field := range of.Fields() {
			if field.IsExported() && mayHoldValues(field.Type, above) {
				return true
			}
		}
	}
	return false
}
