package guard

import (
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/jq/internal/render"
)

// shape formats a value; the argument is the format. It refuses a text over the limit before creating it.
func (m *machine) shape(v any, args []any, f *Fuel) (any, error) {
	format, _ := args[0].(string)
	s, isText := v.(string)
	switch format {
	case "csv", "tsv", "sh":
		return m.row(format, v, f)
	case "text":
		if isText {
			return v, nil
		}
		return f.render(v)
	case "json":
		return f.render(v)
	}
	if !isText {
		rendered, err := f.render(v)
		if err != nil {
			return nil, err
		}
		s, _ = rendered.(string)
	}
	if err := f.charge(started + int64(len(s))/16); err != nil {
		return nil, err
	}
	if err := f.room(render.Grown(format, s)); err != nil {
		return nil, err
	}
	return m.call("@"+format, s)
}

// row formats a list as one line.
func (m *machine) row(format string, v any, f *Fuel) (any, error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	cost, bytes := int64(started+4*len(list)), int64(0)
	for _, e := range list {
		if s, ok := e.(string); ok {
			cost += int64(len(s)) / 8
			bytes += render.Grown(format, s) + 3
			continue
		}
		cost += priceOf(e)
		bytes += render.ScalarLength(e) + 1
	}
	if err := f.charge(cost); err != nil {
		return nil, err
	}
	if err := f.room(bytes); err != nil {
		return nil, err
	}
	return m.call("@"+format, v)
}

// render writes a value as JSON text, as gojq does, into memory of the right size.
func (f *Fuel) render(v any) (any, error) {
	g := &gauge{limits: f.Limits}
	if err := f.measure(g, v); err != nil {
		return nil, err
	}
	if err := f.charge(3*g.nodes + g.text()/16 + g.digits/4 + g.sorting); err != nil {
		return nil, err
	}
	size := render.JSONLength(v)
	if err := f.room(size); err != nil {
		return nil, err
	}
	var b strings.Builder
	b.Grow(int(size))
	render.JSON(&b, v)
	return b.String(), nil
}
