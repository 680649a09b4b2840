package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/signalbox-dev/signalbox/dsl/internal/value"
)

// plain returns a schema of the library as a plain JSON value.
func plain(ref *openapi3.SchemaRef) (any, error) {
	text, err := json.Marshal(ref)
	if err != nil {
		return nil, err
	}
	return value.Decode(text)
}

// jsonSchema converts a schema of a description to a JSON Schema of the draft 2020-12, which that of 3.1 is already. It
// drops what says nothing about a request.
func (c *converter) jsonSchema(what string, v any) any {
	in, ok := v.(map[string]any)
	if !ok {
		return v
	}
	if ref, refers := in["$ref"]; refers && c.older {
		return map[string]any{"$ref": ref} // what is beside it is ignored
	}
	out := make(map[string]any, len(in))
	for key, member := range in {
		switch key {
		case "description", "title", "example", "examples", "default", "externalDocs", "xml", "discriminator", "deprecated",
			"readOnly", "writeOnly", "nullable", "allowEmptyValue", "$schema":
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			out[key] = c.each(what, member)
		case "items", "additionalProperties", "not", "contains", "if", "then", "else", "propertyNames",
			"unevaluatedProperties", "unevaluatedItems":
			out[key] = c.jsonSchema(what, member)
		case "allOf", "anyOf", "oneOf", "prefixItems":
			out[key] = c.list(what, member)
		case "pattern":
			c.pattern(what, member, out)
		default:
			if !strings.HasPrefix(key, "x-") {
				out[key] = member
			}
		}
	}
	c.withoutReadOnly(in, out)
	if c.older {
		modernise(in, out)
	}
	return out
}

func (c *converter) each(what string, v any) any {
	in, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := make(map[string]any, len(in))
	for name, schema := range in {
		out[name] = c.jsonSchema(what, schema)
	}
	return out
}

func (c *converter) list(what string, v any) any {
	in, ok := v.([]any)
	if !ok {
		return v
	}
	out := make([]any, len(in))
	for i, schema := range in {
		out[i] = c.jsonSchema(what, schema)
	}
	return out
}

// pattern keeps a regular expression that Go's engine has. Those of descriptions are of JavaScript.
func (c *converter) pattern(what string, v any, out map[string]any) {
	text, _ := v.(string)
	if _, err := regexp.Compile(text); err != nil {
		c.notes = append(c.notes, fmt.Sprintf("%s has the pattern %.80q, which is not checked: %v", what, text, err))
		return
	}
	out["pattern"] = v
}

// withoutReadOnly makes properties that only responses have optional.
func (c *converter) withoutReadOnly(in, out map[string]any) {
	required, _ := in["required"].([]any)
	properties, _ := in["properties"].(map[string]any)
	kept := slices.DeleteFunc(slices.Clone(required), func(name any) bool {
		text, _ := name.(string)
		property, _ := properties[text].(map[string]any)
		return property["readOnly"] == true
	})
	if len(kept) < len(required) {
		out["required"] = kept
	}
}

// modernise converts the keywords of 3.0 that JSON Schema has in another form.
func modernise(in, out map[string]any) {
	for limit, exclusive := range map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"} {
		switch out[exclusive] {
		case true:
			if bound, given := out[limit]; given {
				out[exclusive] = bound
				delete(out, limit)
				continue
			}
			delete(out, exclusive)
		case false:
			delete(out, exclusive)
		}
	}
	if in["nullable"] != true {
		return
	}
	kind, typed := out["type"].(string)
	if !typed { // such as allOf with one reference
		given := maps.Clone(out)
		clear(out)
		out["anyOf"] = []any{map[string]any{"type": openapi3.TypeNull}, given}
		return
	}
	out["type"] = []any{kind, openapi3.TypeNull}
	if values, ok := out["enum"].([]any); ok && !slices.Contains(values, any(nil)) {
		out["enum"] = append(slices.Clone(values), nil)
	}
}
