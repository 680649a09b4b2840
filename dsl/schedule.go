package dsl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
)

// schedule reads what starts runs. There is no run yet, so nothing in it can be evaluated on data but that of events.
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
		one("every", func(v value) { out.Every = p.interval(v, "schedule.every", time.Second) }),
		one("cron", func(v value) { out.Cron = p.cron(v) }),
		one("after", func(v value) { out.After = p.interval(v, "schedule.after", 0) }),
		one("on", func(v value) { out.On = p.trigger(v) }),
		{"read", false, func(v value) { out.Read = p.form(v) }},
	})
	if ok && len(given) != 1 {
		p.report(CodeValue, v, "keep one of every, cron, after, on", "schedule must have exactly one of every, cron, after and on, got %s", describeKeys(given))
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
		p.report(CodeValue, v, `write it as "PT30S" or as {seconds: 30}`, "%s cannot be an expression: there is no run yet to evaluate it in", what)
		return nil
	}
	before := len(p.problems)
	d := p.duration(v, nil)
	if length, _ := d.Fixed(); length < least && len(p.problems) == before {
		p.report(CodeValue, v, "", "%s must be at least %v", what, least)
	}
	return d
}

func (p *parser) trigger(v value) *eventfilter.Spec {
	if until, ok := v.member("until"); ok {
		p.report(CodeValue, until, "remove it; a run can listen to further events by a listen task", "until has no meaning in schedule.on: each run is started once")
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
		filter, err := f.Filter(expect)
		if err != nil {
			p.report(CodeValue, v, "", "%v", err)
		}
		spec.Filters = append(spec.Filters, filter)
	}
	return spec
}

// without is an object without a member.
func without(n *tree.Node, key string) *tree.Node {
	if n.Get(key) == nil {
		return n
	}
	out := *n
	out.Members = slices.DeleteFunc(slices.Clone(n.Members), func(m tree.Member) bool { return m.Key == key })
	return &out
}

// cronField is one field of a cron expression: its range, and names for its values from the lowest on.
type cronField struct {
	name      string
	low, high int
	names     string
}

func cronFields() []cronField {
	return []cronField{
		{"minute", 0, 59, ""},
		{"hour", 0, 23, ""},
		{"day of the month", 1, 31, ""},
		{"month", 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"},
		{"day of the week", 0, 7, "sun mon tue wed thu fri sat"},
	}
}

// cron checks a cron expression. It takes what all cron programs agree on: five fields of numbers, names, ranges, lists
// and steps, and the well-known names for whole expressions.
func (p *parser) cron(v value) string {
	text := p.text(v, "schedule.cron")
	if v.node.Kind != tree.String {
		return ""
	}
	if err := checkCron(text); err != nil {
		suggestion := "write minute, hour, day of the month, month and day of the week, for example 0 8 * * mon-fri"
		if strings.HasPrefix(strings.TrimSpace(text), "@") {
			suggestion = "use @hourly, @daily, @weekly, @monthly or @yearly; intervals go into schedule.every"
		}
		p.report(CodeValue, v, suggestion, "schedule.cron %.80q is not a cron expression: %v", text, err)
	}
	return strings.Join(strings.Fields(text), " ")
}

func checkCron(text string) error {
	parts := strings.Fields(text)
	if len(parts) == 1 && strings.HasPrefix(parts[0], "@") {
		if names := []string{"@hourly", "@daily", "@weekly", "@monthly", "@yearly"}; !slices.Contains(names, parts[0]) {
			return fmt.Errorf("there is no %q", parts[0])
		}
		return nil
	}
	fields := cronFields()
	if len(parts) != len(fields) {
		return fmt.Errorf("it has %d fields instead of %d", len(parts), len(fields))
	}
	allowed := make([]map[int]bool, len(fields))
	for i, f := range fields {
		values, err := f.parse(parts[i])
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		allowed[i] = values
	}
	const days, months, weekdays = 2, 3, 4
	if !strings.HasPrefix(parts[days], "*") && !strings.HasPrefix(parts[weekdays], "*") {
		return fmt.Errorf("cron programs disagree on what a day of the month together with a day of the week means; leave one of them *")
	}
	if !anyDay(allowed[months], allowed[days]) {
		return fmt.Errorf("there is no such day in any of its months")
	}
	return nil
}

// parse gives the values that a field allows.
func (f cronField) parse(text string) (map[int]bool, error) {
	out := map[int]bool{}
	for item := range strings.SplitSeq(text, ",") {
		span, stepText, stepped := strings.Cut(item, "/")
		step := 1
		if stepped {
			n, err := strconv.Atoi(stepText)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("the step %q is not a positive number", stepText)
			}
			step = n
		}
		low, high := f.low, f.high
		if span != "*" {
			first, last, isRange := strings.Cut(span, "-")
			var err error
			if low, err = f.value(first); err != nil {
				return nil, err
			}
			switch {
			case isRange:
				if high, err = f.value(last); err != nil {
					return nil, err
				}
			case !stepped:
				high = low
			}
			if low > high {
				return nil, fmt.Errorf("the range %q goes backwards", span)
			}
		}
		for n := low; n <= high; n += step {
			out[n] = true
		}
	}
	return out, nil
}

func (f cronField) value(text string) (int, error) {
	if i := slices.Index(strings.Fields(f.names), strings.ToLower(text)); i >= 0 {
		return f.low + i, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || strings.HasPrefix(text, "+") || n < f.low || n > f.high {
		return 0, fmt.Errorf("%q is not between %d and %d", text, f.low, f.high)
	}
	return n, nil
}

// anyDay tells whether one of the months can have one of the days.
func anyDay(months, days map[int]bool) bool {
	lengths := []int{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	for i, length := range lengths {
		for day := range days {
			if months[i+1] && day <= length {
				return true
			}
		}
	}
	return false
}
