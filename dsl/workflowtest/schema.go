package workflowtest

import (
	"encoding/json"
	"fmt"
)

// Schema returns the JSON Schema of test files, for editors. It is derived from the same tables as the reader.
func Schema() []byte {
	root := schemaOf(shape{form: object, fields: func(r *reader) fields { return r.fileFields(&File{}) }})
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Tests of a Signalbox workflow"
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("encode the schema of test files: %v", err)) // it has texts, lists and objects only
	}
	return append(out, '\n')
}

func schemaOf(s shape) map[string]any {
	switch s.form {
	case anything:
		return map[string]any{}
	case integer:
		return map[string]any{"type": "integer"}
	case moment:
		return map[string]any{"type": "string", "format": "date-time"}
	case length:
		return map[string]any{"type": []string{"string", "object"}}
	case mapping:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(*s.item)}
	case list:
		return map[string]any{"type": "array", "items": schemaOf(*s.item)}
	case some:
		one := schemaOf(*s.item)
		return map[string]any{"anyOf": []any{one, map[string]any{"type": "array", "items": one}}}
	case object:
		properties, required := map[string]any{}, []string{}
		for _, f := range s.fields(&reader{}) {
			property := schemaOf(f.shape)
			property["description"] = f.doc
			properties[f.name] = property
			if f.required {
				required = append(required, f.name)
			}
		}
		return map[string]any{
			"type": "object", "properties": properties, "required": required, "additionalProperties": false,
		}
	case text, expression:
	}
	out := map[string]any{"type": "string"}
	if len(s.oneOf) > 0 {
		out["enum"] = s.oneOf
	}
	return out
}
