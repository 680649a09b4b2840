package dsl

import (
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/internal/cron"
	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
)

// schedule reads the definition of when runs start. There is no run yet, so its expressions can use only the data of
// events.
func (p *parser) schedule(v value) *Schedule {
	out := &Schedule{}
	var given []string
	one := func(key string, read func(value)) field {
		return field{key, false, func(v value) {
			given = append(given, key)
			read(v)
		}}
	}
	ok := p.object(v, "schedule", fields{
		one("every", func(v value) { out.Every = p.every(v) }),
		one("cron", func(v value) { out.Cron = p.cron(v) }),
		one("after", func(v value) { out.After = p.interval(v, "schedule.after", 0) }),
		one("on", func(v value) { out.On = p.trigger(v) }),
		{"read", false, func(v value) { out.Read = p.form(v) }},
	})
	if ok && len(given) != 1 {
		p.report(CodeValue, v, "keep one of every, cron, after, on",
			"schedule must have exactly one of every, cron, after and on, got %s", describeKeys(given))
	}
	if read, ok := v.member("read"); ok && len(given) == 1 && out.On == nil && !slices.Contains(given, "on") {
		p.report(CodeValue, read, "remove it", "read goes with on only: no event starts this workflow")
	}
	if out.On != nil && out.Read == "" {
		out.Read = eventfilter.Envelope
	}
	return out
}

// interval reads a duration that does not depend on data.
func (p *parser) interval(v value, what string, least time.Duration) *Duration {
	if p.isExpression(v, nil) {
		p.report(CodeValue, v, `write it as "PT30S" or as {seconds: 30}`,
			"%s cannot be an expression: there is no run yet to evaluate it in", what)
		return nil
	}
	before := len(p.violations)
	d := p.duration(v, nil)
	if length, _ := d.Fixed(); length < least && len(p.violations) == before {
		p.report(CodeValue, v, "", "%s must be at least %v", what, least)
	}
	return d
}

// every reads an interval. Temporal silently rounds it down to whole seconds, so that an interval with a fraction would
// fire too often.
func (p *parser) every(v value) *Duration {
	before := len(p.violations)
	d := p.interval(v, "schedule.every", time.Second)
	if d == nil || len(p.violations) > before {
		return d
	}
	if length, _ := d.Fixed(); length%time.Second != 0 {
		p.report(CodeValue, v, "round it", "schedule.every must be in whole seconds, got %v", length)
	}
	return d
}

func (p *parser) trigger(v value) *eventfilter.Spec {
	if until, ok := v.member("until"); ok {
		p.report(CodeUnsupported, until, "remove it; a run can listen to further events by a listen task",
			"until under schedule.on is in the language, but this version of Signalbox does not run it yet: each run is "+
				"started once")
	}
	strategy := p.consumption(value{node: without(v.node, "until"), path: v.path, key: v.key}, nil, "schedule.on")
	spec := &eventfilter.Spec{Mode: strategy.Mode}
	for _, f := range strategy.Filters {
		expect := map[string]any{}
		for _, c := range f.Correlate {
			if c.Expect != nil {
				expect[c.Name], _ = c.Expect.Static()
			}
		}
		filter, err := f.Filter(expect, nil)
		if err != nil {
			p.report(CodeValue, v, "", "%v", err)
		}
		spec.Filters = append(spec.Filters, filter)
	}
	return spec
}

// without returns a copy of an object without one member.
func without(n *tree.Node, key string) *tree.Node {
	if n.Get(key) == nil {
		return n
	}
	out := *n
	out.Members = slices.DeleteFunc(slices.Clone(n.Members), func(m tree.Member) bool { return m.Key == key })
	return &out
}

// cron reads a cron expression and returns it with single spaces.
func (p *parser) cron(v value) string {
	text := p.text(v, "schedule.cron")
	if v.node.Kind != tree.String {
		return ""
	}
	if err := cron.Check(text); err != nil {
		suggestion := "write minute, hour, day of the month, month and day of the week, for example 0 8 * * mon-fri"
		if strings.HasPrefix(strings.TrimSpace(text), "@") {
			suggestion = "use @hourly, @daily, @weekly, @monthly or @yearly; intervals go into schedule.every"
		}
		p.report(CodeValue, v, suggestion, "schedule.cron %.80q is not a cron expression: %v", text, err)
	}
	return strings.Join(strings.Fields(text), " ")
}
