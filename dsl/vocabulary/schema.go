package vocabulary

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Schema returns the JSON Schema of documents, for editors: draft 2020-12, with a description for each key. It cannot
// express all rules of the language: a document that it accepts may have errors that only package dsl finds.
func (v *Vocabulary) Schema() []byte {
	definitions := map[string]any{}
	for _, t := range v.Types() {
		definitions[definition(t.Name)] = v.schemaOf(t)
	}
	root := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Workflow",
		"$ref":    reference(Document)["$ref"],
		"$defs":   definitions,
	}
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("encode the schema of documents: %v", err)) // it has texts, numbers, lists and objects only
	}
	return append(out, '\n')
}

// definition returns the name of a type under $defs, which is part of a URI.
func definition(name string) string { return strings.ReplaceAll(name, " ", "-") }

func reference(name string) map[string]any {
	return map[string]any{"$ref": "#/$defs/" + definition(name)}
}

func (v *Vocabulary) schemaOf(t *Type) map[string]any {
	switch t.Form {
	case Text:
		return textSchema(t)
	case Expression:
		return map[string]any{"type": "string"}
	case Wrapped:
		return map[string]any{"type": "string", "pattern": `^\s*\$\{`}
	case Integer:
		return map[string]any{"type": "integer"}
	case Boolean:
		return map[string]any{"type": "boolean"}
	case Structure, Map:
		return objectSchema(t)
	case List:
		return atLeast(map[string]any{"type": "array", "items": reference(t.Item)}, "minItems", t.Least)
	case Named:
		return atLeast(map[string]any{"type": "array", "items": map[string]any{
			"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": reference(t.Item),
		}}, "minItems", t.Least)
	case Choice, Variant:
		return map[string]any{"anyOf": v.options(t)}
	case Any:
	}
	return map[string]any{}
}

func textSchema(t *Type) map[string]any {
	out := map[string]any{"type": "string"}
	if len(t.Words) > 0 {
		out["enum"] = t.Words
	} else if t.Pattern != "" {
		out["pattern"] = t.Pattern
	}
	return out
}

func objectSchema(t *Type) map[string]any {
	out := atLeast(map[string]any{"type": "object", "additionalProperties": false}, "minProperties", t.Least)
	properties := map[string]any{}
	var required []string
	for _, key := range t.Keys {
		property := reference(key.Type)
		property["description"] = key.Doc
		properties[key.Name] = property
		if key.Required {
			required = append(required, key.Name)
		}
	}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	if len(required) > 0 {
		out["required"] = required
	}
	if t.Form == Map {
		out["additionalProperties"] = reference(t.Item)
	}
	for keyword, names := range map[string][]string{"oneOf": t.OneOf, "anyOf": t.AnyOf} {
		var given []any
		for _, name := range names {
			given = append(given, map[string]any{"required": []string{name}})
		}
		if given != nil {
			out[keyword] = given
		}
	}
	return out
}

// options returns the schemas of the options of a type. One that the same key selects as an earlier one with words, as
// a function and a call of a kind, excludes these words.
func (v *Vocabulary) options(t *Type) []any {
	var out []any
	words := map[string][]string{}
	for _, name := range t.Options {
		option := v.types[name]
		schema := reference(name)
		if t.Form == Variant {
			first := option.Keys[0]
			if reserved := words[first.Name]; reserved != nil {
				schema["not"] = map[string]any{"properties": map[string]any{first.Name: map[string]any{"enum": reserved}}}
			}
			words[first.Name] = append(words[first.Name], v.types[first.Type].Words...)
		}
		out = append(out, schema)
	}
	return out
}

func atLeast(schema map[string]any, keyword string, least int) map[string]any {
	if least > 0 {
		schema[keyword] = least
	}
	return schema
}
