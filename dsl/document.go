package dsl

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/suggest"
	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
)

const (
	semverPattern = `^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)` +
		`(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
		`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`
	namePattern = `^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`
)

// document reads the whole definition. The parts that others depend on come first: the mode of expressions, then the
// reusable parts, then the tasks that refer to them.
func (p *parser) document(root value) *Document {
	d := &Document{Evaluate: Evaluate{Language: "jq"}}
	if p.reportOlderLanguage(root) {
		return d
	}
	p.reportZigflow(root)
	if v, ok := root.member("evaluate"); ok {
		p.evaluate(v, &d.Evaluate)
	}
	p.loose = d.Evaluate.Loose
	if v, ok := root.member("use"); ok {
		p.collectUse(v)
	}
	base := scope{}
	var settings scheduleSettings
	p.object(root, "the document", fields{
		{"document", true, func(v value) { settings = p.header(v, d) }},
		{"input", false, func(v value) { d.Input = p.input(v, base.at(slotWorkflowInput), false) }},
		{"use", false, func(v value) { d.Extensions = p.extensions(v) }},
		{"do", true, func(v value) { d.Do = p.taskList(v, base) }},
		{"timeout", false, func(v value) { d.Timeout = p.timeout(v, base.at(slotWorkflowInput)) }},
		{"output", false, func(v value) { d.Output = p.output(v, base.at(slotWorkflowOutput), false) }},
		{"schedule", false, func(v value) { d.Schedule = p.schedule(v) }},
		{"evaluate", false, func(value) {}},
	})
	p.finishSchedule(d.Schedule, settings)
	d.Use = p.finishUse()
	p.finishExtensions(d)
	p.finishErrorFilters()
	p.finishDefinition(root, d)
	return d
}

func (p *parser) header(v value, d *Document) (settings scheduleSettings) {
	p.object(v, "document", fields{
		{"dsl", true, func(v value) { d.DSL = p.dslVersion(v) }},
		{"namespace", true, func(v value) { d.Namespace = p.name(v, "the namespace") }},
		{"name", true, func(v value) { d.Name = p.name(v, "the name") }},
		{"version", true, func(v value) { d.Version = p.semver(v, "the version") }},
		{"title", false, func(v value) { d.Title = p.text(v, "the title") }},
		{"summary", false, func(v value) { d.Summary = p.text(v, "the summary") }},
		{"tags", false, func(v value) { d.Tags = p.tags(v) }},
		{"metadata", false, func(v value) {
			d.Metadata, d.Labels = p.plainObject(v, "metadata"), p.labels(v)
			settings = p.platformMetadata(v)
		}},
	})
	return settings
}

// reportZigflow names the dialect of a document for Zigflow, which also runs on Temporal.
func (p *parser) reportZigflow(root value) {
	header, _ := root.member("document")
	if header.node == nil {
		return
	}
	for _, key := range []string{"taskQueue", "workflowType"} {
		if member, ok := header.member(key); ok {
			p.add(Violation{Code: CodeUnsupported, Path: member.path, Pos: member.key,
				Message:    fmt.Sprintf("document.%s is of Zigflow's dialect, which is not the language of the specification", key),
				Suggestion: "write namespace and name: runs are started by them"})
		}
	}
}

func (p *parser) semver(v value, what string) string {
	s := p.text(v, what)
	if v.node.Kind == tree.String && !IsVersion(s) {
		p.report(CodeValue, v, `write three numbers, for example "1.0.0"`, "%s %q is not a semantic version", what, s)
	}
	return s
}

// dslVersion accepts the versions with the meaning that this package implements: all of 1.0. A
// pre-release is read as its release; what the release changed since then is refused.
func (p *parser) dslVersion(v value) string {
	const suggestion = `write dsl: "1.0.3"`
	before := len(p.violations)
	s := p.semver(v, "the version of the language")
	release, _, _ := strings.Cut(s, "+")
	switch {
	case len(p.violations) > before:
	case !strings.HasPrefix(s, "1.0."):
		p.report(CodeUnsupported, v, suggestion, "version %q of the language is not supported, 1.0.x is", s)
	case strings.Contains(release, "-"):
		p.warn(CodePreRelease, v, Pos{}, suggestion, "version %q of the language is a pre-release, it is read as 1.0", s)
	}
	return s
}

// reportOlderLanguage recognises a document of the language before 1.0, which has another structure, and reports only
// that.
func (p *parser) reportOlderLanguage(root value) bool {
	states, machine := root.member("states")
	version, versioned := root.member("specVersion")
	_, headed := root.member("document")
	if headed || !versioned && (!machine || states.node.Kind != tree.Array) {
		return false
	}
	at, which := root, "before 1.0"
	if versioned {
		at, which = version, fmt.Sprintf("%q", version.node.Text)
	}
	p.report(CodeUnsupported, at, "write it anew for 1.0, with document and do",
		"this is a document of version %s of the language, which has another structure: 1.0.x is supported", which)
	return true
}

func (p *parser) name(v value, what string) string {
	s := p.text(v, what)
	if v.node.Kind == tree.String && !regexp.MustCompile(namePattern).MatchString(s) {
		p.report(CodeValue, v, "use up to 63 letters, digits and inner hyphens", "%s %.80q is not allowed", what, s)
	}
	return s
}

func (p *parser) tags(v value) map[string]string {
	if !p.is(v, tree.Object, "tags") {
		return nil
	}
	out := make(map[string]string, len(v.node.Members))
	for _, m := range v.node.Members {
		member, _ := v.member(m.Key)
		out[m.Key] = p.text(member, fmt.Sprintf("the tag %q", m.Key))
	}
	return out
}

func (p *parser) evaluate(v value, e *Evaluate) {
	p.object(v, "evaluate", fields{
		{"language", false, func(v value) {
			if s := p.text(v, "the language of expressions"); v.node.Kind == tree.String && s != "jq" {
				p.unsupported(v, fmt.Sprintf("the expression language %q", s))
			}
		}},
		{"mode", false, func(v value) { e.Loose = p.oneOf(v, "the mode of expressions", "strict", "loose") == "loose" }},
	})
}

// reusable is one named part under use. A part is read at each reference to it, because the variables that its
// expressions may use depend on where it is referred to. A part without a reference is read for its violations only.
type reusable struct {
	value
	used bool
	size int // number of values in it; 0: not counted yet
}

// useSections lists the sections of use whose entries tasks refer to, and the reader of their entries. This version
// does not run sections without a reader.
func (p *parser) useSections() []section {
	return []section{
		{"errors", "error", func(v value, s scope) { p.errorDef(v, s.at(slotTask)) }},
		{"retries", "retry policy", func(v value, s scope) { p.retryPolicy(v, s.at(slotTask)) }},
		{"timeouts", "timeout", func(v value, s scope) { p.timeoutDef(v, s.at(slotTask)) }},
		{"authentications", "authentication policy", func(v value, s scope) { p.authenticationPolicy(v, s.at(slotTask)) }},
		{"functions", "function", func(v value, _ scope) { p.unusedFunction(v) }},
		{"catalogs", "catalog", func(v value, _ scope) { p.catalog(v) }},
	}
}

type section struct {
	key, noun string
	check     func(value, scope)
}

func (p *parser) collectUse(v value) {
	p.use = make(map[string]map[string]*reusable)
	fs := fields{{"secrets", false, p.collectSecrets}, {"extensions", false, func(value) {}}}
	for _, s := range p.useSections() {
		f := field{key: s.key}
		if s.check != nil {
			f.read = func(v value) { p.use[s.key] = p.entries(v, "use."+s.key) }
		}
		fs = append(fs, f)
	}
	p.object(v, "use", fs)
}

func (p *parser) entries(v value, what string) map[string]*reusable {
	out := make(map[string]*reusable)
	if p.is(v, tree.Object, what) {
		for _, m := range v.node.Members {
			out[m.Key] = &reusable{value: v.child(m)}
		}
	}
	return out
}

// lookup resolves a name under use.
func (p *parser) lookup(v value, key, noun string) (value, bool) {
	found, ok := p.use[key][v.node.Text]
	if !ok {
		suggestion := suggest.Name(v.node.Text, sortedKeys(p.use[key]))
		switch {
		case len(p.origins) > 0 && p.origins[len(p.origins)-1].foreign:
			suggestion = "write it in the function: it has no reusable parts of the document that calls it"
		case suggestion == "":
			suggestion = "define it under use." + key
		}
		p.report(CodeUnknownReference, v, suggestion, "the %s %q is not defined under use.%s", noun, v.node.Text, key)
		return value{}, false
	}
	found.used = true
	p.countReference(v, found)
	return found.value, !p.stopped
}

func (p *parser) finishUse() Use {
	for _, s := range p.useSections() {
		for _, name := range sortedKeys(p.use[s.key]) {
			entry := p.use[s.key][name]
			if entry.used {
				continue
			}
			s.check(entry.value, scope{})
			p.add(Violation{
				Severity: SeverityWarning, Code: CodeUnused, Path: entry.path, Pos: entry.pos(),
				Message: fmt.Sprintf("the %s %q is never used", s.noun, name), Suggestion: "refer to it or remove it",
			})
		}
	}
	sorted := func(key string) []string { return sortedKeys(p.use[key]) }
	return Use{
		Authentications: sorted("authentications"), Errors: sorted("errors"), Retries: sorted("retries"),
		Timeouts: sorted("timeouts"), Functions: sorted("functions"), Catalogs: sorted("catalogs"),
		Secrets: p.finishSecrets(),
	}
}

func sortedKeys(parts map[string]*reusable) []string { return slices.Sorted(maps.Keys(parts)) }
