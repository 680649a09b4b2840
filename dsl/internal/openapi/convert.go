package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// converter makes an operation of the library's model.
type converter struct {
	doc   *openapi3.T
	older bool // the schemas are those of 3.0
	// schemas are the shared ones as JSON Schemas by name, converted as they are needed.
	schemas map[string]any
	notes   []string
	bytes   int // of all schemas
}

func (c *converter) operation(id string, at place, item *openapi3.PathItem, base *url.URL) (*Operation, error) {
	of := item.GetOperation(strings.ToUpper(at.method))
	o := &Operation{ID: id, Method: strings.ToUpper(at.method), Path: at.path}
	var err error
	if o.server, err = serverOf(c.doc, item, of, base); err != nil {
		return nil, err
	}
	if err := c.parameters(o, slices.Concat(item.Parameters, of.Parameters)); err != nil {
		return nil, err
	}
	c.security(o, of)
	slices.SortFunc(o.Parameters, func(a, b *Parameter) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.In, b.In))
	})
	if err := o.checkPath(); err != nil {
		return nil, err
	}
	if of.RequestBody != nil && of.RequestBody.Value != nil {
		if o.Body, err = c.body(of.RequestBody.Value); err != nil {
			return nil, err
		}
		if name, ok := of.Extensions["x-codegen-request-body-name"].(string); ok && o.Body.Name != "" {
			o.Body.Name = name
		}
	}
	o.Notes = c.notes
	return o, nil
}

// parameters adds parameters. Those of the operation, which follow, replace those of its path.
func (c *converter) parameters(o *Operation, all openapi3.Parameters) error {
	if len(all) > maxParameters {
		return fmt.Errorf("the operation has %d parameters, the limit is %d", len(all), maxParameters)
	}
	for _, ref := range all {
		if ref == nil || ref.Value == nil {
			continue
		}
		p, err := c.parameter(ref.Value)
		if err != nil {
			return err
		}
		o.Parameters = slices.DeleteFunc(o.Parameters, func(q *Parameter) bool { return q.Name == p.Name && q.In == p.In })
		o.Parameters = append(o.Parameters, p)
	}
	return nil
}

// maxParameters is the number of parameters that an operation may have.
const maxParameters = 1000

func (c *converter) parameter(of *openapi3.Parameter) (*Parameter, error) {
	p := &Parameter{Name: of.Name, In: Location(of.In), Required: of.Required, reserved: of.AllowReserved}
	if of.Name == "" {
		return nil, fmt.Errorf("a %s parameter has no name", of.In)
	}
	method, err := of.SerializationMethod()
	if err != nil {
		return nil, fmt.Errorf("the parameter %q has the unknown location %q", of.Name, of.In)
	}
	p.style, p.explode = method.Style, method.Explode
	if !slices.Contains(styles()[p.In], p.style) {
		return nil, fmt.Errorf("%s cannot have the style %q", p, p.style)
	}
	if p.In == InPath {
		p.Required = true
	}
	if p.In == InHeader && slices.Contains([]string{"Accept", "Content-Type", "Authorization"},
		http.CanonicalHeaderKey(p.Name)) {
		p.Required = false // the format ignores their description, and requests have them anyway
	}
	schema := of.Schema
	for media, content := range of.Content {
		if content != nil {
			schema, p.media = content.Schema, media
		}
	}
	if p.Schema, err = c.schema(p.String(), schema); err != nil {
		return nil, err
	}
	p.shape = shapeOf(schema, maxShape)
	return p, nil
}

// styles lists the styles of parameters by location.
func styles() map[Location][]string {
	return map[Location][]string{
		InPath:   {styleSimple, styleLabel, styleMatrix},
		InQuery:  {styleForm, styleSpace, stylePipe, styleDeep},
		InHeader: {styleSimple},
		InCookie: {styleForm},
	}
}

// security adds the alternatives to authenticate, and a parameter for each API key.
func (c *converter) security(o *Operation, of *openapi3.Operation) {
	requirements := c.doc.Security
	if of.Security != nil {
		requirements = *of.Security
	}
	optional := len(requirements) == 0
	for _, requirement := range requirements {
		var all Requirement
		for _, name := range slices.Sorted(maps.Keys(requirement)) {
			s := Scheme{Name: name, Type: name}
			if ref := c.doc.Components.SecuritySchemes[name]; ref != nil && ref.Value != nil {
				s.Type, s.HTTP = ref.Value.Type, ref.Value.Scheme
				if s.Type == "apiKey" && ref.Value.Name != "" {
					s.Parameter = ref.Value.Name
					o.addKey(s.Parameter, Location(ref.Value.In))
				}
			}
			all = append(all, s)
		}
		optional = optional || len(all) == 0
		o.Security = append(o.Security, all)
	}
	if optional {
		o.Security = nil
	}
}

// addKey adds the parameter of an API key.
func (o *Operation) addKey(name string, in Location) {
	style := map[Location]string{InQuery: styleForm, InHeader: styleSimple, InCookie: styleForm}[in]
	if style == "" || slices.ContainsFunc(o.Parameters, func(p *Parameter) bool { return p.Name == name && p.In == in }) {
		return
	}
	o.Parameters = append(o.Parameters, &Parameter{Name: name, In: in, style: style,
		shape: &shape{types: []string{openapi3.TypeString}}})
}

// variable matches a variable in the template of a path or a server.
func variable() *regexp.Regexp { return regexp.MustCompile(`\{([^{}]*)\}`) }

// checkPath reports a variable of the path that no parameter describes.
func (o *Operation) checkPath() error {
	for _, m := range variable().FindAllStringSubmatch(o.Path, -1) {
		if !slices.ContainsFunc(o.Parameters, func(p *Parameter) bool { return p.In == InPath && p.Name == m[1] }) {
			return fmt.Errorf("the path %.200q has the variable %q, which no parameter describes", o.Path, m[1])
		}
	}
	return nil
}

func (c *converter) body(of *openapi3.RequestBody) (*Body, error) {
	b := &Body{Required: of.Required, Name: "body", members: true}
	media := chooseMedia(slices.Sorted(maps.Keys(of.Content)))
	content := of.Content[media]
	b.Media = media
	if strings.Contains(media, "*") || media == "" {
		b.Media = typeJSON
	}
	var schema *openapi3.SchemaRef
	if content != nil {
		schema = content.Schema
	}
	var err error
	if b.Schema, err = c.schema("the body", schema); err != nil {
		return nil, err
	}
	given, named := of.Extensions["x-originalParamName"].(string)
	if schema != nil && schema.Value != nil {
		types := schema.Value.Type.Slice()
		b.members = len(types) == 0 || slices.Contains(types, openapi3.TypeObject)
		properties, required := map[string]bool{}, map[string]bool{}
		collect(schema, properties, required, map[*openapi3.Schema]bool{})
		b.properties, b.required = slices.Sorted(maps.Keys(properties)), slices.Sorted(maps.Keys(required))
		b.separators = separatorsOf(content, schema.Value)
	}
	b.members = b.members && (isJSON(b.Media) || isForm(b.Media))
	switch {
	case named:
		b.Name = given
	case b.members && slices.Contains(b.properties, b.Name):
		b.Name = ""
	}
	return b, nil
}

// chooseMedia returns the type in which a body is sent: JSON where that is possible, then a form.
func chooseMedia(all []string) string {
	for _, fits := range []func(string) bool{
		func(m string) bool { return mediaType(m) == typeJSON }, isJSON,
		func(m string) bool { return strings.Contains(m, "*") && !strings.HasPrefix(m, "multipart/") },
		func(m string) bool { return mediaType(m) == typeForm },
		func(m string) bool { return !isForm(m) },
		func(string) bool { return true },
	} {
		if i := slices.IndexFunc(all, fits); i >= 0 {
			return all[i]
		}
	}
	return ""
}

// collect adds the properties of an object, and those that a request must have.
func collect(ref *openapi3.SchemaRef, properties, required map[string]bool, seen map[*openapi3.Schema]bool) {
	if ref == nil || ref.Value == nil || seen[ref.Value] {
		return
	}
	seen[ref.Value] = true
	for name := range ref.Value.Properties {
		properties[name] = true
	}
	for _, name := range ref.Value.Required {
		if p := ref.Value.Properties[name]; p == nil || p.Value == nil || !p.Value.ReadOnly {
			required[name] = true
		}
	}
	for _, part := range ref.Value.AllOf {
		collect(part, properties, required, seen)
	}
}

// separatorsOf returns the separators of the lists in a form that are one field each.
func separatorsOf(content *openapi3.MediaType, schema *openapi3.Schema) map[string]string {
	out := map[string]string{}
	for name, property := range schema.Properties {
		if property == nil || property.Value == nil {
			continue
		}
		if separator, ok := property.Value.Extensions[separatorKey].(string); ok {
			out[name] = separator
		}
	}
	for name, encoding := range content.Encoding {
		if encoding == nil {
			continue
		}
		separator := map[string]string{styleSpace: " ", stylePipe: "|"}[encoding.Style]
		if encoding.Explode != nil && !*encoding.Explode || encoding.Explode == nil && separator != "" {
			out[name] = cmp.Or(separator, ",")
		}
	}
	return out
}

// maxShape is the depth to which the types of lists within each other are known.
const maxShape = 8

// shapeOf returns the types of a value and its parts.
func shapeOf(ref *openapi3.SchemaRef, depth int) *shape {
	if ref == nil || ref.Value == nil || depth == 0 {
		return &shape{}
	}
	s := &shape{types: ref.Value.Type.Slice()}
	if len(s.types) == 0 && len(ref.Value.AllOf) == 1 {
		return shapeOf(ref.Value.AllOf[0], depth-1)
	}
	if slices.Contains(s.types, openapi3.TypeArray) {
		s.items = shapeOf(ref.Value.Items, depth-1)
	}
	if slices.Contains(s.types, openapi3.TypeObject) && depth == maxShape { // objects within others are not coerced
		s.members = make(map[string]*shape, len(ref.Value.Properties))
		for name, property := range ref.Value.Properties {
			s.members[name] = shapeOf(property, depth-1)
		}
	}
	return s
}

// schema returns a schema of the description as a JSON Schema; nil where there is none.
func (c *converter) schema(what string, ref *openapi3.SchemaRef) (*Schema, error) {
	if ref == nil || ref.Ref == "" && ref.Value == nil {
		return nil, nil //nolint:nilnil // every value is valid
	}
	definition, err := plain(ref)
	if err != nil {
		return nil, fmt.Errorf("the schema of %s cannot be read: %w", what, err)
	}
	root := c.jsonSchema(what, definition)
	object, ok := root.(map[string]any)
	if !ok {
		return nil, nil //nolint:nilnil // likewise
	}
	shared := map[string]any{}
	if err := c.closure(object, shared); err != nil {
		return nil, err
	}
	if len(shared) > 0 {
		object["components"] = map[string]any{"schemas": shared}
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("the schema of %s cannot be read: %w", what, err)
	}
	if c.bytes += len(text); c.bytes > maxBytes {
		return nil, fmt.Errorf("the schemas of the operation have more than %d bytes, each with all that it refers to",
			maxBytes)
	}
	return &Schema{Definition: text}, nil
}

// maxBytes bounds the schemas of an operation.
const maxBytes = 4 << 20

const sharedSchemas = "#/components/schemas/"

// closure adds the shared schemas that a schema refers to.
func (c *converter) closure(v any, into map[string]any) error {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if err := c.closure(item, into); err != nil {
				return err
			}
		}
	case map[string]any:
		ref, _ := v["$ref"].(string)
		if strings.HasPrefix(ref, sharedSchemas) {
			if err := c.share(segments(ref)[2], into); err != nil {
				return err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := c.closure(v[name], into); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *converter) share(name string, into map[string]any) error {
	if _, known := into[name]; known {
		return nil
	}
	converted, known := c.schemas[name]
	if !known {
		ref := c.doc.Components.Schemas[name]
		if ref == nil {
			return nil
		}
		definition, err := plain(ref)
		if err != nil {
			return fmt.Errorf("the schema %q cannot be read: %w", name, err)
		}
		if c.schemas == nil {
			c.schemas = map[string]any{}
		}
		converted = c.jsonSchema(fmt.Sprintf("the schema %q", name), definition)
		c.schemas[name] = converted
	}
	into[name] = converted
	return c.closure(converted, into)
}
