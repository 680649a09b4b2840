package match

import (
	"encoding/json"

	"github.com/jellydator/ttlcache/v3"

	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// compiler caches compiled specs and shapes.
type compiler struct {
	jq      *jq.Compiler
	targets *ttlcache.Cache[targetKey, *compiled]
	shapes  *ttlcache.Cache[string, *compiledShape]
}

// targetKey identifies a spec that never changes: a listener, or a workflow's trigger in one document and with one
// timer.
type targetKey struct{ project, name, hash, timed string }

// compiledShape is a shape ready to match.
type compiledShape struct {
	event.Shape

	matcher *eventfilter.Matcher
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
	shape *compiledShape
	// expect are the values that the filter expects, as [event.ShapeValues] encodes them.
	expect string
}

func newCompiler(targets, shapes uint64) *compiler {
	return &compiler{
		jq:      jq.NewCompiler(),
		targets: ttlcache.New(ttlcache.WithCapacity[targetKey, *compiled](targets)),
		shapes:  ttlcache.New(ttlcache.WithCapacity[string, *compiledShape](shapes)),
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
	of, values, err := event.ShapeOf(f)
	if err != nil {
		of.Hash += " " + err.Error() // not the shape of the filters whose values are valid
		return compiledFilter{shape: &compiledShape{Shape: of, broken: err}}
	}
	return compiledFilter{shape: c.shape(of), expect: values}
}

func (c *compiler) shape(of event.Shape) *compiledShape {
	if cached := c.shapes.Get(of.Hash); cached != nil {
		return cached.Value()
	}
	s := &compiledShape{Shape: of}
	s.matcher, s.broken = eventfilter.Compile(of.Filter, c.jq)
	return c.shapes.Set(of.Hash, s, ttlcache.NoTTL).Value()
}
