package dsl

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/suggest"
	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// FunctionCall calls a function, which is a task: of the document (use.functions), of a catalog, or of a file.
type FunctionCall struct {
	// Function is the function as the document names it.
	Function string
	// With is the input of the function; nil: the input of the task.
	With *Template
	// Task is the function. Its pointer is below that of the calling task, so that each call has tasks of its own. It sees
	// no variable of the calling task. It is nil where the resource with the function was postponed.
	Task *Task
}

// Kind implements Body.
func (*FunctionCall) Kind() Kind { return KindCall }

// Tasks returns the function as a list of tasks.
func (c *FunctionCall) Tasks() []*Task {
	if c.Task == nil {
		return nil
	}
	return []*Task{c.Task}
}

// DefaultCatalog is the name of the catalog that a project has without declaring it.
const DefaultCatalog = "default"

// origin is a function that is read in place of a call of it.
type origin struct {
	id     string // identifies the function, for the detection of calls in a circle
	prefix string // the path under which it is read
	at     value  // the name in the call
	// reference is the resource with the function if foreign is set; otherwise the function is of the text around it, and
	// path is that of its definition there.
	foreign   bool
	reference Reference
	path      string
}

// located returns a violation with the position at which its author finds it: in use.functions, or at the call of a
// function that is not of the document.
func (p *parser) located(v Violation) Violation {
	for _, o := range slices.Backward(p.origins) {
		rest, inside := strings.CutPrefix(v.Path, o.prefix)
		switch {
		case !inside:
		case o.foreign:
			v.Message = fmt.Sprintf("%s:%d:%d: %s", o.reference.URI, v.Pos.Line, v.Pos.Column, v.Message)
			v.Path, v.Pos = o.at.path, o.at.pos()
		default:
			v.Path = o.path + rest
		}
	}
	return v
}

// outermost returns the position in the document of a part of a function.
func (p *parser) outermost(pointer string, pos Pos) (string, Pos) {
	v := p.located(Violation{Path: pointer, Pos: pos})
	return v.Path, v.Pos
}

// taskPosition returns the position of a task in the document: for a task of a function outside, that of the call.
func (p *parser) taskPosition(pos Pos) Pos {
	for _, o := range p.origins {
		if o.foreign {
			return o.at.pos()
		}
	}
	return pos
}

// functionCall reads the call of a function.
func (p *parser) functionCall(task, v value, name string, c taskContext) Body {
	body := &FunctionCall{Function: name}
	if with, ok := task.member("with"); ok && p.is(with, tree.Object, "with") {
		body.With = p.template(with, c.scope.at(slotTask))
	}
	if n := len(p.origins); n >= MaxFunctionDepth {
		p.report(CodeLimit, v, "", "functions call each other more than %d deep", MaxFunctionDepth)
		return body
	}
	if function, ok := p.function(v, name); ok {
		prefix := task.path + pointer("call", functionName(name))
		function.prefix, function.at = prefix, v
		body.Task = p.calledTask(function)
	}
	return body
}

// function finds a function by the name in its call. ok is false if there is none, which is reported.
func (p *parser) function(v value, name string) (origin, bool) {
	if defined := p.use["functions"][name]; defined != nil {
		defined.used = true
		p.countReference(v, defined)
		return origin{id: defined.path, path: defined.path}, !p.stopped
	}
	cataloged := regexp.MustCompile(`^([^:@/]+):([^:@/]+)@([^:@/]+)$`).FindStringSubmatch(name)
	reference, auth, ok := Reference{}, (*Authentication)(nil), true
	switch {
	case cataloged != nil:
		reference, auth, ok = p.catalogedFunction(v, cataloged[1], cataloged[2], cataloged[3])
	case isPath(name):
		var err error
		if reference, err = p.resolve(functionFile(name)); err != nil {
			p.report(CodeResource, v, "", "%v", err)
			ok = false
		}
	default:
		p.unknownFunction(v, name)
		ok = false
	}
	if !ok {
		return origin{}, false
	}
	reference.Path, reference.Pos, reference.Authentication = v.path, v.pos(), auth
	return origin{id: reference.URI, foreign: true, reference: reference}, true
}

func (p *parser) unknownFunction(v value, name string) {
	known := suggest.Closest(name, append(sortedKeys(p.use["functions"]), "http", "openapi", CallGo))
	switch {
	case regexp.MustCompile(`^[^:@/]+:[^:@/]+$`).MatchString(name):
		known = fmt.Sprintf("name its catalog: %s@%s is the project's", name, DefaultCatalog)
	case strings.Contains(name, "@"):
		known = "write name:version@catalog"
	case known == "":
		known = "define it under use.functions, or write name:version@catalog or a URL"
	}
	p.report(CodeUnknownReference, v, known, "the function %.200q is not defined under use.functions", name)
}

// catalogedFunction returns the reference to a function of a catalog.
func (p *parser) catalogedFunction(v value, name, version, catalog string) (Reference, *Authentication, bool) {
	if !IsVersion(version) {
		p.report(CodeValue, v, "write name:1.0.0@catalog",
			"the version %.80q of the function %.80q is not a semantic version", version, name)
		return Reference{}, nil, false
	}
	defined := p.use["catalogs"][catalog]
	if defined == nil && catalog == DefaultCatalog {
		return Reference{URI: name + ":" + version + "@" + catalog, Kind: ReferenceFunction}, nil, true
	}
	if defined == nil {
		p.report(CodeUnknownReference, v, suggest.Name(catalog, append(sortedKeys(p.use["catalogs"]), DefaultCatalog)),
			"the catalog %.80q is not defined under use.catalogs", catalog)
		return Reference{}, nil, false
	}
	defined.used = true
	root, auth, ok := p.catalog(defined.value)
	if !ok {
		return Reference{}, nil, false
	}
	reference, err := p.resolve(catalogFile(root, name, version))
	if err != nil {
		p.report(CodeResource, v, "", "%v", err)
	}
	return reference, auth, err == nil
}

// catalog reads a catalog and returns its root.
func (p *parser) catalog(v value) (root string, auth *Authentication, ok bool) {
	p.object(v, "a catalog", fields{{"endpoint", true, func(v value) {
		root, _, auth, ok = p.resourceEndpoint(v)
	}}})
	return root, auth, ok
}

// catalogFile returns the URI of a function in a catalog with the structure of the official one. A repository without a
// branch is that of its default branch.
func catalogFile(root, name, version string) string {
	root = strings.TrimRight(root, "/")
	if u, err := url.Parse(root); err == nil {
		parts := strings.Split(strings.Trim(u.Path, "/"), "/")
		switch {
		case u.Host == "github.com" && len(parts) == 2:
			root += "/tree/HEAD"
		case u.Host == "gitlab.com" && len(parts) >= 2 && !strings.Contains(u.Path, "/-/"):
			root += "/-/tree/HEAD"
		}
	}
	return root + "/functions/" + url.PathEscape(name) + "/" + url.PathEscape(version) + "/function.yaml"
}

// isPath reports whether the name of a function is the address or the path of a file.
func isPath(name string) bool {
	u, err := url.Parse(name)
	return err == nil && (u.Scheme != "" && strings.Contains(name, "://") || strings.HasPrefix(name, "./") ||
		strings.HasPrefix(name, "../") || isFile(name))
}

func isFile(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// functionFile returns the file of a function. A name without one is that of the folder that has the file
// function.yaml, on GitHub also as github.com/OWNER/REPOSITORY/FOLDER@REVISION.
func functionFile(name string) string {
	u, err := url.Parse(name)
	if err != nil || isFile(u.Path) {
		return name
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if folder, revision, ok := strings.Cut(strings.Join(parts[min(2, len(parts)):], "/"), "@"); ok &&
		u.Host == "github.com" {
		parts = slices.Concat(parts[:2], []string{"tree", revision}, strings.Split(folder, "/"))
		u.Path = "/" + path.Join(parts...)
	}
	u.Path = strings.TrimRight(u.Path, "/") + "/function.yaml"
	return u.String()
}

// functionName returns a short name for a function: that in a catalog, that of its file, or that of the folder.
func functionName(name string) string {
	if !isPath(name) {
		name, _, _ = strings.Cut(name, ":")
		return name
	}
	if u, err := url.Parse(name); err == nil {
		name = u.Path
	}
	parts := strings.Split(strings.Trim(name, "/"), "/")
	for _, part := range slices.Backward(parts) {
		part, _, _ = strings.Cut(strings.TrimSuffix(part, path.Ext(part)), "@")
		if part != "function" && part != "" && !regexp.MustCompile(`^v?\d+(\.\d+)*$`).MatchString(part) {
			return part
		}
	}
	return "function"
}

// calledTask reads a function in place of its call. What it sees of the text around the call depends on where it is
// defined: a function of the document has the reusable parts of the document, any other has none.
func (p *parser) calledTask(o origin) *Task {
	for _, around := range p.origins {
		if around.id == o.id {
			p.report(CodeValue, o.at, "repeat with a for or a try", "the function %.200q calls itself", o.at.node.Text)
			return nil
		}
	}
	var body value
	if o.foreign {
		r := p.load(o.at, o.reference)
		if r == nil {
			return nil
		}
		root := p.readResource(o.at, r)
		if root == nil {
			return nil
		}
		body = value{node: root, path: o.prefix, key: o.at.pos()}
		defer p.enterResource(r)()
	} else {
		defined := p.use["functions"][o.at.node.Text]
		body = value{node: defined.node, path: o.prefix, key: defined.key}
	}
	p.origins = append(p.origins, o)
	defer func() { p.origins = p.origins[:len(p.origins)-1] }()
	if p.countTask(body); p.stopped {
		return nil
	}
	name := functionName(o.at.node.Text)
	return p.task(name, 0, body, taskContext{self: name})
}

// enterResource replaces what belongs to the text that is read now, and returns the function that restores it.
func (p *parser) enterResource(r *Resource) func() {
	lines, use, loose := p.lines, p.use, p.loose
	p.lines, p.use, p.loose = splitLines(r.Content), nil, false
	return func() { p.lines, p.use, p.loose = lines, use, loose }
}

// unusedFunction checks a function that is never called.
func (p *parser) unusedFunction(v value) {
	name := v.path[strings.LastIndexByte(v.path, '/')+1:]
	p.origins = append(p.origins, origin{id: v.path, prefix: v.path, path: v.path})
	p.task(name, 0, v, taskContext{self: name})
	p.origins = p.origins[:len(p.origins)-1]
}

// CheckFunction returns the violations of a function that is published by itself: in the catalog of a project, under
// the name by which workflows call it. Its resources are read when such a workflow is published, which also declares the
// secrets that the function uses.
func CheckFunction(name string, source []byte, opts ...Option) Violations {
	p := &parser{limits: DefaultLimits(), secrets: map[string]bool{}, kinds: map[Kind]bool{}, anySecret: true,
		base: Reference{URI: name, Kind: ReferenceFunction}}
	for _, o := range opts {
		o(p)
	}
	p.jq = jq.NewLimitedCompiler(p.limits.MaxTerms)
	resources := NewResources()
	for {
		p.resources, p.violations, p.errorCount, p.stopped, p.taskCount, p.referred = resources, nil, 0, false, 0, 0
		clear(resources.missing)
		p.checkFunction(name, source)
		missing := resources.Missing()
		if len(missing) == 0 || p.stopped {
			return limitViolations(p.violations.sorted(), p.limits.MaxViolations)
		}
		for _, reference := range missing {
			resources.Postpone(reference.URI)
		}
	}
}

func (p *parser) checkFunction(name string, source []byte) {
	root, found := tree.Parse(source, tree.Limits{
		Bytes: p.limits.MaxBytes, Depth: p.limits.MaxDepth, Aliases: p.limits.MaxAliases, Nodes: p.limits.MaxNodes,
	})
	for _, f := range found {
		p.addTreeViolation(f)
	}
	if root == nil {
		return
	}
	p.lines = splitLines(source)
	if v := (value{node: root}); p.admit(v) {
		p.task(functionName(name), 0, v, taskContext{self: functionName(name)})
	}
}

// FunctionSchemas returns the JSON Schemas of the input and the output that are in the source of a function, as JSON in
// its order; nil where there is none, or where it is a resource.
func FunctionSchemas(source []byte, opts ...Option) (input, output []byte) {
	if root := read(source, opts); root != nil {
		return schemaIn(root.Get("input")), schemaIn(root.Get("output"))
	}
	return nil, nil
}

// schemaIn returns the schema in the input or the output of a task.
func schemaIn(node *tree.Node) []byte {
	for _, key := range []string{"schema", "document"} {
		if node == nil {
			return nil
		}
		node = node.Get(key)
	}
	if node == nil {
		return nil
	}
	text, err := appendJSON(nil, node)
	if err != nil {
		return nil // such a function is not published
	}
	return text
}

// IsVersion reports whether a text is a semantic version.
func IsVersion(text string) bool { return regexp.MustCompile(semverPattern).MatchString(text) }
