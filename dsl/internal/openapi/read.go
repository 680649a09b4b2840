package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"

	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
	"github.com/signalbox-dev/signalbox/dsl/internal/value"
)

// Load returns a text that a description refers to, as JSON. The URI is whole, or relative to the folder to which the
// URI of the description is relative.
type Load func(uri string) ([]byte, error)

// Description is a description of a service. It is not safe for concurrent use.
type Description struct {
	root     map[string]any
	swagger  bool
	location *url.URL
	load     Load

	found map[string][]place
	err   error // of a part that may have operations
}

// place is where a description has an operation.
type place struct {
	path, method string
	item         map[string]any // nil: it is in another text
}

// UnknownError reports an operation that a description does not have.
type UnknownError struct {
	ID    string
	Known []string // the identifiers that it has, sorted
}

// Error implements error.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("the description has no operation %.200q", e.ID)
}

// Read reads a description, which is a plain JSON value, and finds its operations.
func Read(description any, uri string, load Load) (*Description, error) {
	root, ok := description.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a description must be an object, got %s", value.TypeName(description))
	}
	location, err := url.Parse(uri)
	if err != nil {
		return nil, fmt.Errorf("the address of the description cannot be read: %w", err)
	}
	d := &Description{root: root, location: location, load: load, found: map[string][]place{}}
	version, three := root["openapi"]
	if !three {
		version, d.swagger = root["swagger"]
	}
	switch text := fmt.Sprint(version); {
	case three && regexp.MustCompile(`^3\.[01](\.|$)`).MatchString(text):
	case d.swagger && (text == "2.0" || text == "2"):
	case three || d.swagger:
		return nil, fmt.Errorf("the version %.20q of descriptions is not supported: 2.0, 3.0 and 3.1 are", text)
	default:
		return nil, errors.New("it has neither openapi nor swagger, which give the version of a description")
	}
	d.find()
	return d, nil
}

// find lists the operations.
func (d *Description) find() {
	paths, _ := d.root["paths"].(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item, _ := paths[path].(map[string]any)
		ref, _ := item["$ref"].(string)
		outside := ref != "" && !strings.HasPrefix(ref, "#")
		switch {
		case outside:
			var err error
			if item, err = d.outside(ref); err != nil {
				d.err = errors.Join(d.err, err)
			}
		case ref != "":
			item, _ = lookUp(d.root, segments(ref)).(map[string]any)
		}
		for _, method := range methods() {
			operation, _ := item[method].(map[string]any)
			id, _ := operation["operationId"].(string)
			if id == "" {
				continue
			}
			p := place{path: path, method: method, item: item}
			if outside {
				p.item = nil
			}
			d.found[id] = append(d.found[id], p)
		}
	}
}

func methods() []string {
	return []string{"delete", "get", "head", "options", "patch", "post", "put", "trace"}
}

// outside returns a part of another text.
func (d *Description) outside(ref string) (map[string]any, error) {
	u, err := url.Parse(ref)
	if err != nil {
		return nil, fmt.Errorf("%.200q is not a reference", ref)
	}
	target := d.location.ResolveReference(u)
	if d.location.Host == "" {
		target.Path = strings.TrimPrefix(target.Path, "/")
	}
	fragment := target.Fragment
	target.Fragment, target.RawFragment = "", ""
	text, err := d.load(target.String())
	if err != nil {
		return nil, err
	}
	whole, err := value.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", target, err)
	}
	item, _ := lookUp(whole, segments("#"+fragment)).(map[string]any)
	return item, nil
}

// Operation returns an operation by its identifier. The error is an *UnknownError if there is none.
func (d *Description) Operation(id string) (*Operation, error) {
	places := d.found[id]
	switch {
	case len(places) == 0 && d.err != nil:
		return nil, d.err
	case len(places) == 0:
		return nil, &UnknownError{ID: id, Known: slices.Sorted(maps.Keys(d.found))}
	case len(places) > 1:
		return nil, fmt.Errorf("the description has the operation %.200q twice: %s %s and %s %s", id,
			strings.ToUpper(places[0].method), places[0].path, strings.ToUpper(places[1].method), places[1].path)
	}
	part := d.part(places[0])
	values := count(part)
	if values > maxValues {
		return nil, fmt.Errorf("the operation %.200q and what it refers to have %d values, the limit is %d", id, values,
			maxValues)
	}
	doc, err := d.model(part, places[0])
	if err != nil {
		return nil, fmt.Errorf("the description of the operation %.200q cannot be read: %w", id, err)
	}
	item := doc.Paths.Value(places[0].path)
	if item == nil || item.GetOperation(strings.ToUpper(places[0].method)) == nil {
		return nil, fmt.Errorf("the description of the operation %.200q cannot be read", id)
	}
	c := &converter{doc: doc, older: d.swagger || doc.IsOpenAPI30()}
	o, err := c.operation(id, places[0], item, d.location)
	if err != nil {
		return nil, err
	}
	o.Values = values
	return o, nil
}

// maxValues is the number of values that an operation and what it refers to in the same text may have. The library
// takes about a second for so many.
const maxValues = 50_000

// count returns the number of values in a value.
func count(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			n += count(item)
		}
	case map[string]any:
		for _, member := range v {
			n += count(member)
		}
	}
	return n
}

// model returns the part of the description that an operation needs in the library's model. The library reads nothing
// else: descriptions may be large, and defects of other operations do not matter.
func (d *Description) model(part map[string]any, at place) (doc *openapi3.T, err error) {
	defer func() {
		if r := recover(); r != nil { // of the library, for what it does not expect
			doc, err = nil, fmt.Errorf("%v", r)
		}
	}()
	if d.swagger {
		if err := adapt(part, at); err != nil {
			return nil, err
		}
	}
	text, err := value.Encode(part)
	if err != nil {
		return nil, err
	}
	loader := openapi3.NewLoader()
	loader.ReadFromURIFunc = func(_ *openapi3.Loader, location *url.URL) ([]byte, error) {
		u := *location
		u.Fragment, u.RawFragment = "", ""
		return d.load(u.String())
	}
	if d.swagger {
		var older openapi2.T
		if err := json.Unmarshal(text, &older); err != nil {
			return nil, err
		}
		doc, err = openapi2conv.ToV3WithLoader(&older, loader, d.location)
	} else {
		doc, err = loader.LoadFromDataWithPath(text, d.location)
	}
	if err != nil {
		return nil, err
	}
	doc.InternalizeRefs(loader.Context, nil)
	if doc.Components == nil {
		doc.Components = &openapi3.Components{}
	}
	return doc, nil
}

// part returns the description with one operation and all that it refers to, as a value of its own.
func (d *Description) part(at place) map[string]any {
	out := map[string]any{
		"info":  map[string]any{"title": "-", "version": "-"},
		"paths": map[string]any{at.path: d.item(at)},
	}
	for _, key := range []string{
		"openapi", "swagger", "servers", "host", "basePath", "schemes", "consumes", "security", "securityDefinitions",
	} {
		if v, ok := d.root[key]; ok {
			out[key] = clone(v)
		}
	}
	if schemes := lookUp(d.root, []string{"components", "securitySchemes"}); schemes != nil {
		out["components"] = map[string]any{"securitySchemes": clone(schemes)}
	}
	included := map[string]bool{}
	d.include(out, out["paths"], included)
	d.include(out, out["components"], included)
	return out
}

// item returns a path item with one operation.
func (d *Description) item(at place) map[string]any {
	if at.item == nil {
		paths, _ := d.root["paths"].(map[string]any)
		item, _ := clone(paths[at.path]).(map[string]any)
		return item
	}
	item := map[string]any{}
	for _, key := range []string{"parameters", "servers"} {
		if v, ok := at.item[key]; ok {
			item[key] = clone(v)
		}
	}
	operation, _ := clone(at.item[at.method]).(map[string]any)
	for _, key := range []string{"responses", "callbacks", "tags", "externalDocs"} {
		delete(operation, key)
	}
	operation["responses"] = map[string]any{"default": map[string]any{"description": "-"}}
	item[at.method] = operation
	return item
}

// include copies the targets of the references in a value.
func (d *Description) include(out map[string]any, v any, included map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			d.include(out, item, included)
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && strings.HasPrefix(ref, "#/") {
			d.includeTarget(out, segments(ref), included)
		}
		for _, member := range v {
			d.include(out, member, included)
		}
	}
}

func (d *Description) includeTarget(out map[string]any, path []string, included map[string]bool) {
	depth := 2
	if path[0] == "components" {
		depth = 3
	}
	path = path[:min(depth, len(path))]
	key := strings.Join(path, "\x00")
	target := lookUp(d.root, path)
	if included[key] || target == nil {
		return
	}
	included[key] = true
	at := out
	for _, name := range path[:len(path)-1] {
		inner, ok := at[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			at[name] = inner
		}
		at = inner
	}
	copied := clone(target)
	at[path[len(path)-1]] = copied
	d.include(out, copied, included)
}

// segments returns the parts of a reference to a part of the same text.
func segments(ref string) []string {
	pointer := strings.TrimPrefix(ref, "#")
	if decoded, err := url.PathUnescape(pointer); err == nil {
		pointer = decoded
	}
	if pointer == "" {
		return nil
	}
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, part := range parts {
		parts[i] = tree.Unescape(part)
	}
	return parts
}

// lookUp returns a part of a value; nil if there is none.
func lookUp(v any, path []string) any {
	for _, name := range path {
		switch at := v.(type) {
		case map[string]any:
			v = at[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

func clone(v any) any { return value.Replace(v, func(leaf any) any { return leaf }) }
