package openapi

import (
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/value"
)

// The styles in which parameters are sent.
const (
	styleSimple = "simple"
	styleLabel  = "label"
	styleMatrix = "matrix"
	styleForm   = "form"
	styleSpace  = "spaceDelimited"
	stylePipe   = "pipeDelimited"
	styleDeep   = "deepObject"
)

// textOf returns the text of a value that is neither null nor made of others.
func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case nil, []any, map[string]any, Secret, Unknown:
		return "", false
	case string:
		return v, true
	}
	text, err := value.Encode(v)
	return string(text), err == nil
}

// escape encodes all but the unreserved characters of URLs, and but those reserved ones that separate no parameters.
func escape(text string, reserved bool) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0,
			reserved && strings.IndexByte(":/?[]@!$'()*,;=", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// field is a member of an object, or an item of a list, which has no name.
type field struct{ name, text string }

// fields returns the parts of a value in texts that encode has encoded. Nulls are no parts.
func fields(v any, encode func(string) string) []field {
	var out []field
	add := func(name string, v any) {
		if text, ok := textOf(v); ok {
			out = append(out, field{encode(name), encode(text)})
		}
	}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			add("", item)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			add(name, v[name])
		}
	default:
		add("", v)
	}
	return out
}

// join joins fields: between joins them, and within joins the name and the text of one.
func join(all []field, between, within string) string {
	texts := make([]string, len(all))
	for i, f := range all {
		if texts[i] = f.text; f.name != "" {
			texts[i] = f.name + within + f.text
		}
	}
	return strings.Join(texts, between)
}

// within is the text between the name and the text of a field in a list.
func (p *Parameter) within(separator string) string {
	if p.explode {
		return "="
	}
	return separator
}

// content returns the JSON text of a parameter with a type of content.
func (p *Parameter) content(v any) (string, bool) {
	if p.media == "" {
		return "", false
	}
	if text, isText := v.(string); isText && !isJSON(p.media) {
		return text, true
	}
	text, err := value.Encode(v)
	return string(text), err == nil
}

// simple returns the value of a header.
func (p *Parameter) simple(v any) Text {
	if _, secret := v.(Secret); secret {
		return Text{v}
	}
	if text, ok := p.content(v); ok {
		return Text{text}
	}
	return Text{join(fields(v, func(s string) string { return s }), ",", p.within(","))}
}

// pathText returns the text of a path parameter.
func (p *Parameter) pathText(v any) Text {
	encode := func(s string) string { return escape(s, false) }
	if _, secret := v.(Secret); secret {
		prefix := map[string]string{styleLabel: ".", styleMatrix: ";" + encode(p.Name) + "="}[p.style]
		return Text{prefix, v}
	}
	if text, ok := p.content(v); ok {
		return Text{encode(text)}
	}
	all := fields(v, encode)
	_, list := v.([]any)
	_, object := v.(map[string]any)
	switch {
	case p.style == styleLabel && p.explode:
		return Text{"." + join(all, ".", "=")}
	case p.style == styleLabel:
		return Text{"." + join(all, ",", ",")}
	case p.style == styleMatrix && p.explode && list:
		for i := range all {
			all[i].name = encode(p.Name)
		}
		return Text{";" + join(all, ";", "=")}
	case p.style == styleMatrix && p.explode && object:
		return Text{";" + join(all, ";", "=")}
	case p.style == styleMatrix:
		return Text{";" + encode(p.Name) + "=" + join(all, ",", ",")}
	}
	return Text{join(all, ",", p.within(","))}
}

// pairs returns a parameter of the query, or of a cookie, as encoded pairs of name and value.
func (p *Parameter) pairs(v any) []string {
	encode := func(s string) string { return escape(s, p.reserved && p.In == InQuery) }
	name := escape(p.Name, false)
	if text, ok := p.content(v); ok {
		return []string{name + "=" + encode(text)}
	}
	if p.style == styleDeep {
		return deep(name, v, encode)
	}
	all := fields(v, encode)
	_, list := v.([]any)
	_, object := v.(map[string]any)
	if (list || object) && len(all) == 0 {
		return nil
	}
	separator := map[string]string{styleSpace: "%20", stylePipe: "%7C"}[p.style]
	if separator == "" {
		separator = ","
	}
	switch {
	case list && p.explode:
		for i := range all {
			all[i].name = name
		}
	case object && p.explode:
	default:
		return []string{name + "=" + join(all, separator, separator)}
	}
	out := make([]string, len(all))
	for i, f := range all {
		out[i] = f.name + "=" + f.text
	}
	return out
}

// deep returns an object in the style deepObject: name[member]=value, also for members of members.
func deep(name string, v any, encode func(string) string) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		for _, member := range slices.Sorted(maps.Keys(v)) {
			out = append(out, deep(name+"%5B"+escape(member, false)+"%5D", v[member], encode)...)
		}
	case []any:
		for _, item := range v {
			out = append(out, deep(name, item, encode)...)
		}
	default:
		if text, ok := textOf(v); ok {
			out = append(out, name+"="+encode(text))
		}
	}
	return out
}
