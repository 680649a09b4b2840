package dsl

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
	"github.com/signalbox-dev/signalbox/dsl/internal/uritemplate"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// ReferenceKind is the place at which a resource is found.
type ReferenceKind string

// The kinds of references.
const (
	ReferenceWeb      ReferenceKind = "web"      // at an address of http or https
	ReferenceFile     ReferenceKind = "file"     // beside the document: the URI is relative to its folder
	ReferenceFunction ReferenceKind = "function" // in the catalog of the project: the URI is name:version@default
)

// Reference is a part of a document that names a resource, which is a text outside the document.
type Reference struct {
	// URI identifies the resource. References to the same resource have the same URI.
	URI  string
	Kind ReferenceKind
	Path string // JSON pointer of the reference in the document
	Pos  Pos
	// Authentication is that of the endpoint; nil if there is none. No variable exists when it is evaluated.
	Authentication *Authentication
}

// Resource is a text that a document refers to. It is immutable.
type Resource struct {
	URI     string
	Hash    string // see ContentHash
	Content []byte
}

// ContentHash identifies the content of a resource: "sha256:" and its hexadecimal SHA-256.
func ContentHash(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Resources holds the texts that a document refers to. Parse takes them from here and lists those that are missing:
//
//	resources := dsl.NewResources()
//	for {
//		doc, violations := dsl.Parse(source, dsl.WithResources(resources))
//		missing := resources.Missing()
//		if len(missing) == 0 {
//			return doc, violations
//		}
//		for _, reference := range missing { /* Add, Fail or Postpone it */ }
//	}
//
// A resource may refer to others, so that several rounds may be necessary. It is not safe for concurrent use.
type Resources struct {
	entries map[string]entry
	missing map[string]Reference
}

// entry is what is known of a resource: its content, or why there is none.
type entry struct {
	content   []byte
	hash      string
	err       error
	postponed bool
}

// NewResources returns an empty set.
func NewResources() *Resources {
	return &Resources{entries: map[string]entry{}, missing: map[string]Reference{}}
}

// Add adds the content of a resource, which must not be changed from then on.
func (r *Resources) Add(uri string, content []byte) {
	r.entries[uri] = entry{content: content, hash: ContentHash(content)}
	delete(r.missing, uri)
}

// Fail records why a resource is not available. Parse reports it at each reference.
func (r *Resources) Fail(uri string, err error) {
	r.entries[uri] = entry{err: err}
	delete(r.missing, uri)
}

// Postpone makes Parse accept that a resource is missing, with a warning: the part of the document that needs it is not
// checked. Such a document cannot be run.
func (r *Resources) Postpone(uri string) {
	r.entries[uri] = entry{postponed: true}
	delete(r.missing, uri)
}

// ParseStructure parses a document without the resources that it refers to. The document has all its tasks, and cannot be
// run where a resource is missing.
func ParseStructure(source []byte, opts ...Option) (*Document, Violations) {
	resources := NewResources()
	opts = append(slices.Clip(opts), WithResources(resources))
	for {
		doc, violations := Parse(source, opts...)
		missing := resources.Missing()
		if len(missing) == 0 {
			return doc, violations
		}
		for _, reference := range missing {
			resources.Postpone(reference.URI)
		}
	}
}

// Missing returns the references of the last Parse to resources that the set lacks, one for each URI, by URI.
func (r *Resources) Missing() []Reference {
	return slices.SortedFunc(maps.Values(r.missing), func(a, b Reference) int { return cmp.Compare(a.URI, b.URI) })
}

// Key identifies what the set holds: equal sets have equal keys.
func (r *Resources) Key() string {
	var b strings.Builder
	for _, uri := range slices.Sorted(maps.Keys(r.entries)) {
		e := r.entries[uri]
		fmt.Fprintf(&b, "%q %s %v %t\n", uri, e.hash, e.err, e.postponed)
	}
	return b.String()
}

// WithResources provides the texts that the document refers to. Without it each reference is a violation.
func WithResources(r *Resources) Option {
	return func(p *parser) {
		p.resources = r
		clear(r.missing)
	}
}

// Limits of resources.
const (
	// MaxResourceBytes is the size of the largest resource.
	MaxResourceBytes = 4 << 20
	// MaxResources is the number of resources of one document, and MaxResourcesBytes their size together.
	MaxResources      = 100
	MaxResourcesBytes = 8 << 20
	// MaxFunctionDepth is the number of functions that may call each other, one within the other.
	MaxFunctionDepth = 20
	maxURI           = 1000
)

// stored is the canonical form of a document with resources. Documents without any have no member "workflow".
type stored struct {
	Resources []Pin           `json:"resources"`
	Workflow  json.RawMessage `json:"workflow"`
}

// Pin is a resource in the canonical form of a document: its content is stored elsewhere, by its hash.
type Pin struct {
	URI  string `json:"uri"`
	Hash string `json:"hash"`
}

// Unpack splits the canonical form of a document into a source, which parses to an equal document with the resources
// that are pinned.
func Unpack(canonical []byte) (source []byte, pins []Pin, err error) {
	if !bytes.HasPrefix(canonical, []byte(`{"resources":`)) {
		return canonical, nil, nil
	}
	var s stored
	if err := json.Unmarshal(canonical, &s); err != nil {
		return nil, nil, fmt.Errorf("read the canonical form of a document: %w", err)
	}
	return s.Workflow, s.Resources, nil
}

// pack returns the canonical form of a document with resources.
func pack(workflow []byte, resources []Resource) ([]byte, error) {
	s := stored{Workflow: workflow}
	for _, r := range resources {
		s.Resources = append(s.Resources, Pin{URI: r.URI, Hash: r.Hash})
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(s)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// externalResource reads an external resource with a literal URI and returns its text; nil where there is none.
func (p *parser) externalResource(v value, what string) *Resource {
	var found *Resource
	p.object(v, what, fields{
		{"name", false, func(v value) { p.text(v, "the name of a resource") }},
		{"endpoint", true, func(v value) {
			if uri, at, auth, ok := p.resourceEndpoint(v); ok {
				found = p.resource(at, uri, auth)
			}
		}},
	})
	return found
}

// runtimeResource reads an external resource whose URI is an expression or has variables, so that it is read when it is
// used. It returns nil for a literal URI, and for a value that is no such resource.
func (p *parser) runtimeResource(v value, what string, vars []string) *HTTPCall {
	endpoint, given := v.member("endpoint")
	uri := endpoint
	if given && endpoint.node.Kind == tree.Object {
		uri, given = endpoint.member("uri")
	}
	if !given || uri.node.Kind != tree.String || !p.isExpression(uri, vars) && !strings.ContainsAny(uri.node.Text, "{}") {
		return nil
	}
	call := &HTTPCall{Method: &Template{Pos: v.pos(), literal: "GET"}, Output: OutputRaw, Redirect: true}
	p.object(v, what, fields{
		{"name", false, func(v value) { p.text(v, "the name of a resource") }},
		{"endpoint", true, func(v value) {
			p.allowSecrets(func() { call.Endpoint, call.Authentication = p.endpoint(v, vars) })
		}},
	})
	return call
}

// resourceEndpoint reads an endpoint whose URI is known before there is a run. at is the value of the URI.
func (p *parser) resourceEndpoint(v value) (uri string, at value, auth *Authentication, ok bool) {
	at = v
	if v.node.Kind == tree.Object {
		at, _ = v.member("uri")
		p.object(v, "an endpoint", fields{
			{"uri", true, func(value) {}},
			{"authentication", false, func(v value) { auth = p.authentication(v, nil) }},
		})
	}
	if at.node == nil || !p.is(at, tree.String, "the URI of a resource") {
		return "", at, nil, false
	}
	if err := literalURI(at.node.Text); err != nil {
		p.report(CodeValue, at, "write the whole URI: it is read when the workflow is published", "the URI of a resource %v",
			err)
		return "", at, nil, false
	}
	return at.node.Text, at, auth, true
}

// literalURI returns an error for a text that is an expression or a URI template.
func literalURI(text string) error {
	if _, expression := unwrap(text); expression {
		return errors.New("cannot be an expression here")
	}
	if _, err := uritemplate.Check(text); err != nil || strings.ContainsAny(text, "{}") {
		return fmt.Errorf("%.200q is not a URI without variables", text)
	}
	return nil
}

// resource returns the text of a resource, as the value refers to it; nil if there is none, which is reported.
func (p *parser) resource(at value, uri string, auth *Authentication) *Resource {
	reference, err := p.resolve(uri)
	if err != nil {
		p.report(CodeResource, at, "", "%v", err)
		return nil
	}
	reference.Path, reference.Pos, reference.Authentication = at.path, at.pos(), auth
	return p.load(at, reference)
}

func (p *parser) load(at value, reference Reference) *Resource {
	if p.resources == nil {
		p.report(CodeResource, at, "", "the resource %q is outside the document and is not loaded here", reference.URI)
		return nil
	}
	e, known := p.resources.entries[reference.URI]
	switch {
	case !known:
		if first, listed := p.resources.missing[reference.URI]; !listed || first.Authentication == nil {
			reference.Path, reference.Pos = p.outermost(reference.Path, reference.Pos)
			p.resources.missing[reference.URI] = reference
		}
		p.report(CodeResource, at, "", "the resource %q is not loaded yet", reference.URI)
	case e.postponed:
		p.partial = true
		p.warn(CodeResource, at, Pos{}, "",
			"the resource %q is read when the workflow is published, and what needs it is checked then", reference.URI)
	case e.err != nil:
		p.report(CodeResource, at, "", "the resource %q cannot be read: %v", reference.URI, e.err)
	case !p.admitResource(at, reference.URI, e):
	default:
		return p.used[reference.URI]
	}
	return nil
}

// admitResource counts a resource, and reports whether the document may have it.
func (p *parser) admitResource(at value, uri string, e entry) bool {
	if p.used[uri] != nil {
		return true
	}
	if p.used == nil {
		p.used = map[string]*Resource{}
	}
	p.used[uri] = &Resource{URI: uri, Hash: e.hash, Content: e.content}
	total := 0
	for _, r := range p.used {
		total += len(r.Content)
	}
	switch {
	case len(e.content) > MaxResourceBytes:
		p.stop(at, "", "the resource %q has %d bytes, the limit is %d", uri, len(e.content), MaxResourceBytes)
	case total > MaxResourcesBytes:
		p.stop(at, "refer to fewer of them", "the resources of the document have more than %d bytes together",
			MaxResourcesBytes)
	case len(p.used) > MaxResources:
		p.stop(at, "refer to fewer of them", "the document refers to more than %d resources", MaxResources)
	default:
		return true
	}
	return false
}

// usedResources returns the resources of the document, by URI.
func (p *parser) usedResources() []Resource {
	var out []Resource
	for _, uri := range slices.Sorted(maps.Keys(p.used)) {
		out = append(out, *p.used[uri])
	}
	return out
}

// resolve returns what a URI refers to from the text that is read now: the document, or a resource.
func (p *parser) resolve(uri string) (Reference, error) {
	base := p.base
	if n := len(p.origins); n > 0 && p.origins[n-1].foreign {
		base = p.origins[n-1].reference
	}
	return resolveFrom(base, uri)
}

// resolveFrom returns what a URI refers to from a text. The zero base is a document, whose folder has the files.
func resolveFrom(base Reference, uri string) (Reference, error) {
	u, err := url.Parse(uri)
	if err != nil || uri == "" || len(uri) > maxURI {
		return Reference{}, fmt.Errorf("%.200q is not a URI of at most %d bytes", uri, maxURI)
	}
	switch {
	case u.Scheme == "http" || u.Scheme == "https":
		return webReference(u)
	case u.Scheme != "":
		return Reference{}, fmt.Errorf(
			"the resource %.200q has the scheme %q: http, https and files beside the document can be read", uri, u.Scheme)
	case base.Kind == ReferenceWeb:
		from, err := url.Parse(base.URI)
		if err != nil {
			return Reference{}, fmt.Errorf("%.200q is not a URI", base.URI)
		}
		return webReference(from.ResolveReference(u))
	case base.Kind == ReferenceFunction:
		return Reference{}, fmt.Errorf(
			"the function %q is in the catalog of the project and cannot refer to the file %.200q: write a whole URI",
			base.URI, uri)
	case u.Host != "" || path.IsAbs(u.Path) || u.RawQuery != "" || u.Fragment != "" || u.Path == "":
		return Reference{}, fmt.Errorf("%.200q is not a path relative to the folder of the document", uri)
	}
	file := path.Join(path.Dir(base.URI), u.Path)
	if file == ".." || strings.HasPrefix(file, "../") {
		return Reference{}, fmt.Errorf("the file %.200q is outside the folder of the document", uri)
	}
	return Reference{URI: file, Kind: ReferenceFile}, nil
}

// webReference returns the reference to an address. A fragment is a part of the text and not of its address.
func webReference(u *url.URL) (Reference, error) {
	if u.Host == "" {
		return Reference{}, fmt.Errorf("%.200q names no host", u.String())
	}
	if u.User != nil {
		return Reference{}, fmt.Errorf("the URI of a resource at %q has a user in it: use the authentication of the endpoint",
			u.Host)
	}
	u = raw(u)
	u.Fragment, u.RawFragment = "", ""
	return Reference{URI: u.String(), Kind: ReferenceWeb}, nil
}

// raw returns the address of a file's content where the address is that of the page which GitHub or GitLab shows for
// it.
func raw(u *url.URL) *url.URL {
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	switch {
	case u.Host == "github.com" && len(parts) > 4 && (parts[2] == "blob" || parts[2] == "tree" || parts[2] == "raw"):
		return &url.URL{Scheme: u.Scheme, Host: "raw.githubusercontent.com",
			Path: "/" + path.Join(slices.Concat(parts[:2], parts[3:])...)}
	case u.Host == "gitlab.com":
		for _, page := range []string{"/-/blob/", "/-/tree/"} {
			if before, after, ok := strings.Cut(u.Path, page); ok {
				return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: before + "/-/raw/" + after}
			}
		}
	}
	return u
}

// readResource parses a resource in YAML or JSON. Its defects are reported at the value that refers to it.
func (p *parser) readResource(at value, r *Resource) *tree.Node {
	if root, read := p.trees[r.URI]; read || p.done(at) {
		return root
	}
	root, found := tree.Parse(r.Content, tree.Limits{
		Bytes: MaxResourceBytes, Depth: p.limits.MaxDepth, Aliases: p.limits.MaxAliases, Nodes: p.limits.MaxNodes,
	})
	for _, f := range found {
		if f.Kind != tree.TrailingComma {
			p.report(CodeResource, at, f.Suggestion, "%s:%d:%d: %s", r.URI, f.Pos.Line, f.Pos.Column, f.Message)
		}
	}
	if p.trees == nil {
		p.trees = map[string]*tree.Node{}
	}
	if p.trees[r.URI] = root; root == nil {
		return nil
	}
	if p.referred += size(root); p.referred > p.limits.MaxNodes {
		p.stop(at, "refer to fewer or smaller resources", "the document has more than %d values with those of its resources",
			p.limits.MaxNodes)
		return nil
	}
	return root
}

// finishDefinition completes a document with its canonical form and its hash.
func (p *parser) finishDefinition(root value, d *Document) {
	d.Definition = root.node.Value()
	canonical, err := jq.EncodeJSON(d.Definition)
	if err != nil {
		p.report(CodeValue, root, "", "the document has no JSON form: %v", err)
	}
	if len(canonical) > p.limits.maxCanonical() {
		p.stop(root, "", "the document has %d bytes as JSON, the limit is %d", len(canonical), p.limits.maxCanonical())
	}
	d.Partial, d.Programs = p.partial, p.programs
	if d.Resources = p.usedResources(); len(d.Resources) > 0 && err == nil {
		if canonical, err = pack(canonical, d.Resources); err != nil {
			p.report(CodeValue, root, "", "the document has no JSON form: %v", err)
		}
	}
	d.canonical, d.hash = canonical, ContentHash(canonical)
	d.memory = p.memory(root)
	for _, r := range d.Resources {
		d.memory += int64(len(r.Content))
	}
}
