package graph

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
)

// scheduleLabel describes what starts runs; empty if only requests do.
func scheduleLabel(doc *dsl.Document) string {
	s := doc.Schedule
	switch {
	case s == nil:
		return ""
	case s.Every != nil:
		return "every " + durationLabel(s.Every, nil)
	case s.Cron != "":
		return clip("cron " + s.Cron)
	case s.After != nil:
		return "after " + durationLabel(s.After, nil)
	}
	return clip(eventsLabel(at(doc.Definition, "schedule", "on")))
}

// taskLabel describes what a task does.
func taskLabel(t *dsl.Task) string {
	definition, _ := t.Definition.(map[string]any)
	own := definition[string(t.Body.Kind())]
	switch b := t.Body.(type) {
	case *dsl.HTTPCall:
		with, _ := definition["with"].(map[string]any)
		return callLabel(with)
	case *dsl.OpenAPICall:
		return clip(b.Operation)
	case *dsl.FunctionCall:
		return clip(b.Function)
	case *dsl.GoCall:
		return clip(b.Function + ":" + b.Version + " of " + b.Program)
	case *dsl.Do:
		return count(len(b.Tasks), "task")
	case *dsl.Set:
		return setLabel(own)
	case *dsl.Switch:
		return count(len(b.Cases), "case")
	case *dsl.For:
		return forLabel(b, own)
	case *dsl.Fork:
		if b.Compete {
			return clip("first of " + count(len(b.Branches), "branch"))
		}
		return count(len(b.Branches), "branch")
	case *dsl.Try:
		if b.Catch.Retry != nil {
			return clip("retry " + retryLabel(b.Catch.Retry))
		}
	case *dsl.Wait:
		return clip(durationLabel(b.Duration, own))
	case *dsl.Raise:
		return raiseLabel(b.Error, own)
	case *dsl.Listen:
		return listenLabel(b, own)
	case *dsl.Emit:
		return clip(fmt.Sprint(at(own, "event", "with", "type")))
	case *dsl.RunWorkflow:
		version := b.Version
		if version == "" {
			version = "latest"
		}
		return clip(b.Namespace + "/" + b.Name + "@" + version)
	case *dsl.RunProgram:
		return programLabel(b, at(own, string(b.Program)))
	}
	return ""
}

// programLabel describes a program by what identifies it to a reader.
func programLabel(b *dsl.RunProgram, definition any) string {
	switch b.Program {
	case dsl.ProgramScript:
		return string(b.Language) + " script"
	case dsl.ProgramContainer:
		return clip("container " + fmt.Sprint(at(definition, "image")))
	case dsl.ProgramShell:
	}
	command, _, _ := strings.Cut(strings.TrimSpace(fmt.Sprint(at(definition, "command"))), "\n")
	return clip(command)
}

// at returns a member of nested objects, nil if there is none.
func at(v any, path ...string) any {
	for _, key := range path {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

func count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "ch"):
		return strconv.Itoa(n) + " " + noun + "es"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// callLabel returns the method of a call with the host that it goes to. It has no path, query or credentials.
func callLabel(with map[string]any) string {
	method, _ := with["method"].(string)
	if m, expression := source(method); expression {
		method = m
	} else {
		method = strings.ToUpper(method)
	}
	endpoint, ok := with["endpoint"].(string)
	if !ok {
		endpoint, _ = at(with["endpoint"], "uri").(string)
	}
	host, expression := source(endpoint)
	if !expression {
		host = hostOf(endpoint)
	}
	return clip(method + " " + host)
}

// source returns the text of an expression, and whether the text is one.
func source(text string) (string, bool) {
	inner, ok := strings.CutPrefix(strings.TrimSpace(text), "${")
	return strings.TrimSpace(strings.TrimSuffix(inner, "}")), ok
}

// hostOf returns the host and port of a URI template. In a template without a host it returns the first segment of the
// path.
func hostOf(uri string) string {
	if _, rest, ok := strings.Cut(uri, "://"); ok {
		uri = rest
	}
	host, _, _ := strings.Cut(strings.TrimLeft(uri, "/"), "/")
	host, _, _ = strings.Cut(host, "?")
	host, _, _ = strings.Cut(host, "#")
	return host[strings.LastIndex(host, "@")+1:]
}

// setLabel returns the keys that a task sets, or its expression.
func setLabel(own any) string {
	if object, ok := own.(map[string]any); ok {
		return clip(strings.Join(slices.Sorted(maps.Keys(object)), ", "))
	}
	text, _ := own.(string)
	text, _ = source(text)
	return clip(text)
}

func forLabel(b *dsl.For, own any) string {
	in := b.In.Source
	if items, ok := at(own, "in").([]any); ok {
		in = count(len(items), "item")
	}
	label := "for " + b.Each + " in " + in
	if b.While != nil {
		label += " while " + b.While.Source
	}
	return clip(label)
}

// raiseLabel returns the status and the type of an error. own is the definition of the raise.
func raiseLabel(e *dsl.ErrorDef, own any) string {
	kind := at(own, "error", "type")
	if name, ok := at(own, "error").(string); ok {
		kind = name
	}
	text, _ := kind.(string)
	if inner, expression := source(text); expression {
		text = inner
	} else {
		text = lastPart(text)
	}
	return clip(strconv.Itoa(e.Status) + " " + text)
}

// lastPart returns the last segment of an error type.
func lastPart(kind string) string {
	return kind[strings.LastIndexAny(strings.TrimRight(kind, "/"), "/:#")+1:]
}

func listenLabel(b *dsl.Listen, own any) string {
	label := eventsLabel(at(own, "to"))
	if b.To.Until != nil {
		label += " until " + b.To.Until.Source
	}
	if b.To.UntilEvents != nil {
		label += " until " + eventsLabel(at(own, "to", "until"))
	}
	return clip(label)
}

// eventsLabel describes events by the definition of their consumption: an object of one, any or all.
func eventsLabel(consumption any) string {
	var types []string
	mode := ""
	for _, m := range []eventfilter.Mode{eventfilter.One, eventfilter.Any, eventfilter.All} {
		switch filters := at(consumption, string(m)).(type) {
		case map[string]any:
			types = append(types, typeLabel(filters))
		case []any:
			mode = string(m)
			for _, filter := range filters {
				types = append(types, typeLabel(filter))
			}
		}
	}
	switch len(types) {
	case 0:
		return "any event"
	case 1:
		return types[0]
	}
	return mode + " of " + strings.Join(types, ", ")
}

// typeLabel returns the type of the events that a filter matches.
func typeLabel(filter any) string {
	text, ok := at(filter, "with", "type").(string)
	if !ok {
		return "any type"
	}
	text, _ = source(text)
	return text
}

// caughtLabel describes which errors a catch handles.
func caughtLabel(c *dsl.Catch) string {
	var parts []string
	if f := c.Errors; f != nil {
		if f.Status != nil {
			parts = append(parts, strconv.Itoa(*f.Status))
		}
		if f.Type != nil {
			parts = append(parts, lastPart(*f.Type))
		}
		for _, text := range []*string{f.Title, f.Detail, f.Instance} {
			if text != nil {
				parts = append(parts, *text)
			}
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "any error")
	}
	if c.When != nil {
		parts = append(parts, "if "+c.When.Source)
	}
	if c.ExceptWhen != nil {
		parts = append(parts, "unless "+c.ExceptWhen.Source)
	}
	return clip(strings.Join(parts, " "))
}

// extensionLabel describes which tasks an extension is for.
func extensionLabel(e *dsl.Extension) string {
	label := e.Extend
	if e.When != nil {
		label += " when " + e.When.Source
	}
	return clip(label)
}

// retryLabel describes a retry policy by its limits.
func retryLabel(p *dsl.RetryPolicy) string {
	label := "without limit"
	if p.Limit.Attempt.Count > 0 {
		label = "up to " + count(p.Limit.Attempt.Count, "time")
	}
	if p.Limit.Duration != nil {
		if length, fixed := p.Limit.Duration.Fixed(); fixed {
			if p.Limit.Attempt.Count == 0 {
				label = ""
			}
			label = strings.TrimSpace(label + " within " + short(length))
		}
	}
	return label
}

// durationLabel returns the length of a duration, or its expression from the definition.
func durationLabel(d *dsl.Duration, definition any) string {
	if length, fixed := d.Fixed(); fixed {
		return short(length)
	}
	text, _ := definition.(string)
	text, _ = source(text)
	return text
}

// short returns a length without units that are zero: 1h30m, 5m, 1.5s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
