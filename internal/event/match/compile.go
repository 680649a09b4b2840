package match

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jellydator/ttlcache/v3"

	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// compiler caches compiled specs and shapes.
type compiler struct {
	jq      *jq.Compiler
	targets *ttlcache.Cache[targetKey, *compiled]
	shapes  *ttlcache.Cache[string, *shape]
}

// targetKey identifies a spec that never changes: a listener, or a workflow's trigger in one document and with one timer.
type targetKey struct{ project, name, hash, timed string }

// shape is a filter without the expected values of its correlation keys.
type shape struct {
	matcher *eventfilter.Matcher
	// expects are the names of the keys with an expected value, sorted.
	expects []string
	// typ is the only event type that the shape matches; empty where it matches several.
	typ string
	// broken is the error of its compilation.
	broken error
}

// compiled is a spec ready to match.
type compiled struct {
	filters []compiledFilter
	// hash is the hash of the filters, which a set stores to name the filters it was made for; only where the mode is all.
	hash string
}

type compiledFilter struct {
	shape *shape
	// expect are the values of shape.expects, as [joined] encodes them.
	expect string
}

func newCompiler(targets, shapes uint64) *compiler {
	return &compiler{
		jq:      jq.NewCompiler(),
		targets: ttlcache.New(ttlcache.WithCapacity[targetKey, *compiled](targets)),
		shapes:  ttlcache.New(ttlcache.WithCapacity[string, *shape](shapes)),
	}
}

func (c *compiler) compile(key targetKey, s event.Spec) *compiled {
	if cached := c.targets.Get(key); cached != nil {
		return cached.Value()
	}
	out := &compiled{}
	for _, f := range s.Filters {
		out.filters = append(out.filters, c.filter(f))
	}
	if s.Mode == event.All {
		const enough = 8
		if text, err := json.Marshal(s.Filters); err == nil {
			out.hash = derive("filters", string(text))[:enough]
		}
	}
	return c.targets.Set(key, out, ttlcache.NoTTL).Value()
}

func (c *compiler) filter(f event.Filter) compiledFilter {
	bare := event.Filter{With: f.With}
	expected := map[string]string{}
	for name, k := range f.Correlate {
		if bare.Correlate == nil {
			bare.Correlate = map[string]event.Key{}
		}
		bare.Correlate[name] = event.Key{From: k.From}
		if k.Expect != nil {
			expected[name] = string(k.Expect)
		}
	}
	names := slices.Sorted(maps.Keys(expected))
	text, err := json.Marshal(struct {
		Filter  event.Filter `json:"filter"`
		Expects []string     `json:"expects"`
	}{bare, names})
	if err != nil {
		return compiledFilter{shape: &shape{broken: err}}
	}
	s := c.shape(string(text), bare, names)
	values := make([]any, len(names))
	for i, name := range names {
		if values[i], err = jq.DecodeJSON([]byte(expected[name])); err != nil {
			return compiledFilter{shape: &shape{broken: fmt.Errorf("what the correlation key %q expects: %w", name, err), typ: s.typ}}
		}
	}
	return compiledFilter{shape: s, expect: joined(values)}
}

// shape returns the shape of a filter without expected values. text identifies the filter and names.
func (c *compiler) shape(text string, bare event.Filter, names []string) *shape {
	if cached := c.shapes.Get(text); cached != nil {
		return cached.Value()
	}
	s := &shape{expects: names}
	s.matcher, s.broken = eventfilter.Compile(bare, c.jq)
	if types := (eventfilter.Spec{Filters: []event.Filter{bare}}).Types(); len(types) == 1 {
		s.typ = types[0]
	}
	return c.shapes.Set(text, s, ttlcache.NoTTL).Value()
}

// joined encodes values so that two lists give equal text if and only if they are equal.
func joined(values []any) string {
	var b strings.Builder
	for _, v := range values {
		text, err := jq.EncodeJSON(v)
		if err != nil {
			text = []byte("!") // not valid JSON, so it equals nothing
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.String()
}
