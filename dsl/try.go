package dsl

import (
	"fmt"
	"slices"

	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

func (p *parser) tryTask(task value, c taskContext) Body {
	body := &Try{Catch: &Catch{As: "error"}}
	v, _ := task.member("try")
	body.Tasks = p.taskList(v, c.scope)
	if v, ok := task.member("catch"); ok {
		p.catch(v, body.Catch, c)
	} else {
		p.report(CodeMissingKey, task, "", "a try task needs the key %q", "catch")
	}
	return body
}

func (p *parser) catch(v value, body *Catch, c taskContext) {
	if as, ok := v.member("as"); ok {
		body.As = p.variable(as, "catch.as", body.As)
	}
	body.Pos = v.key
	inner := c.scope.with(body.As)
	vars := inner.at(slotTask)
	p.object(v, "catch", fields{
		{"errors", false, func(v value) {
			p.object(v, "catch.errors", fields{{"with", false, func(v value) { body.Errors = p.errorFilter(v) }}})
		}},
		{"as", false, func(value) {}},
		{"when", false, func(v value) { body.When = p.errorCondition(v, "catch.when", vars) }},
		{"exceptWhen", false, func(v value) { body.ExceptWhen = p.errorCondition(v, "catch.exceptWhen", vars) }},
		{"retry", false, func(v value) { body.Retry = p.retry(v, vars) }},
		{"do", false, func(v value) { body.Tasks = p.taskList(v, inner) }},
		{"then", false, func(v value) { body.Then, body.HasThen = p.flow(v, c), true }},
	})
}

// errorCondition reads a condition on a caught error, which is its input. It warns of one that reads only members that
// no error has: that one is meant for the task's input.
func (p *parser) errorCondition(v value, what string, vars []string) *Expr {
	e := p.expr(v, what, vars)
	if e == nil {
		return nil
	}
	known := []string{"type", "status", "title", "detail", "instance"}
	read := jq.Members(e.Source)
	if len(read) > 0 && !slices.ContainsFunc(read, func(name string) bool { return slices.Contains(known, name) }) {
		p.warn(CodeNeverMatches, v, Pos{}, fmt.Sprintf("write $input.%s for the task's input", read[0]),
			"%s sees the error as ., and no error has a member %q", what, read[0])
	}
	return e
}

// errorFilter reads a static filter: the specification has no expressions here.
func (p *parser) errorFilter(v value) *ErrorFilter {
	f := &ErrorFilter{}
	str := func(into **string, what string) func(value) {
		return func(v value) {
			s := p.text(v, what)
			if _, expression := unwrap(s); expression {
				p.report(CodeValue, v, "move the condition to catch.when",
					"%s of a filter is compared as it is, it cannot be an expression", what)
			}
			*into = &s
		}
	}
	p.object(v, "an error filter", fields{
		{"type", false, func(v value) {
			if str(&f.Type, "the type")(v); v.node.Kind == tree.String {
				p.errors.filters = append(p.errors.filters, v)
			}
		}},
		{"status", false, func(v value) {
			n := p.integer(v, "the status")
			f.Status = &n
		}},
		{"instance", false, str(&f.Instance, "the instance")},
		{"title", false, str(&f.Title, "the title")},
		{"detail", false, str(&f.Detail, "the detail")},
		{"details", false, func(details value) {
			if _, both := v.member("detail"); both {
				p.report(CodeValue, details, "remove it", "an error filter has both detail and details")
			}
			p.warn(CodeOldKey, details, details.key, "write detail", "details is the name of detail in older releases")
			str(&f.Detail, "the detail")(details)
		}},
	})
	if v.node.Kind == tree.Object && len(v.node.Members) == 0 {
		p.report(CodeValue, v, "remove errors to catch all", "an error filter must not be empty")
	}
	return f
}

func (p *parser) retry(v value, vars []string) *RetryPolicy {
	if v.node.Kind == tree.String {
		def, ok := p.lookup(v, "retries", "retry policy")
		if !ok {
			return nil
		}
		v = def
	}
	return p.retryPolicy(v, vars)
}

func (p *parser) retryPolicy(v value, vars []string) *RetryPolicy {
	r := &RetryPolicy{Backoff: Backoff{Kind: BackoffConstant}}
	p.object(v, "a retry policy", fields{
		{"when", false, func(v value) { r.When = p.errorCondition(v, "retry.when", vars) }},
		{"exceptWhen", false, func(v value) { r.ExceptWhen = p.errorCondition(v, "retry.exceptWhen", vars) }},
		{"delay", false, func(v value) { r.Delay = p.duration(v, vars) }},
		{"backoff", false, func(v value) { r.Backoff = p.backoff(v) }},
		{"limit", false, func(v value) { r.Limit = p.retryLimit(v, vars) }},
		{"jitter", false, func(v value) {
			r.Jitter = &Jitter{}
			p.object(v, "jitter", fields{
				{"from", true, func(v value) { r.Jitter.From = p.duration(v, vars) }},
				{"to", true, func(v value) { r.Jitter.To = p.duration(v, vars) }},
			})
			p.checkJitter(v, r.Jitter)
		}},
	})
	return r
}

func (p *parser) checkJitter(v value, j *Jitter) {
	if j.From == nil || j.To == nil {
		return
	}
	from, fixed := j.From.Fixed()
	if to, alsoFixed := j.To.Fixed(); fixed && alsoFixed && from > to {
		p.report(CodeValue, v, "swap them", "jitter.from must not be longer than jitter.to")
	}
}

func (p *parser) backoff(v value) Backoff {
	out := Backoff{Kind: BackoffConstant}
	var kinds int
	var fs fields
	for _, kind := range []BackoffKind{BackoffConstant, BackoffLinear, BackoffExponential} {
		fs = append(fs, field{string(kind), false, func(v value) {
			kinds++
			out = Backoff{Kind: kind, Definition: p.plainObject(v, "backoff."+string(kind))}
		}})
	}
	if p.object(v, "backoff", fs) && kinds != 1 {
		p.report(CodeValue, v, "keep one of constant, linear, exponential", "backoff must have exactly one kind, got %d",
			kinds)
	}
	return out
}

func (p *parser) retryLimit(v value, vars []string) RetryLimit {
	var limit RetryLimit
	p.object(v, "limit", fields{
		{"attempt", false, func(v value) {
			p.object(v, "limit.attempt", fields{
				{"count", false, func(v value) {
					limit.Attempt.Count = p.integer(v, "limit.attempt.count")
					if v.node.Kind == tree.Number && limit.Attempt.Count < 1 {
						p.report(CodeValue, v, "give a count of at least 1, or remove the limit",
							"limit.attempt.count must be positive, got %s", v.node.Text)
					}
				}},
				{"duration", false, func(v value) { limit.Attempt.Duration = p.duration(v, vars) }},
			})
		}},
		{"duration", false, func(v value) { limit.Duration = p.duration(v, vars) }},
	})
	return limit
}
