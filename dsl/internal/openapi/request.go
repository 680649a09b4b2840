package openapi

import (
	"errors"
	"maps"
	"mime"
	"slices"
	"strings"
)

const (
	typeJSON          = "application/json"
	typeForm          = "application/x-www-form-urlencoded"
	headerContentType = "Content-Type"
)

// Text is a text in parts, which are strings and Secrets.
type Text []any

// Request is a request to an operation.
type Request struct {
	Method string
	URL    Text // with its query
	// Query has the parameters of the query with secrets in them: the sender encodes them.
	Query   map[string]Text
	Headers map[string]Text
	Body    any // a plain JSON value, in which texts may be Secrets
	HasBody bool
}

// Request returns the request to an operation with arguments, and the units of the budget that their check has used.
// The error is a *ProblemsError if they do not match the description.
func (o *Operation) Request(given map[string]any, budget int64) (*Request, int64, error) {
	c := o.check(given, budget)
	switch {
	case c.err != nil:
		return nil, c.used, c.err
	case len(c.problems) > 0:
		return nil, c.used, &ProblemsError{c.problems}
	}
	r := &Request{Method: o.Method, Query: map[string]Text{}, Headers: map[string]Text{}}
	address, err := o.server.address(c.server())
	if err != nil {
		return nil, c.used, err
	}
	r.URL = append(Text{address}, c.path()...)
	c.query(r)
	c.headers(r)
	if r.HasBody = c.hasBody; r.HasBody {
		r.Body = o.Body.joined(c.body)
	}
	return r, c.used, nil
}

func (c *check) server() map[string]string { return c.arguments.server }

// path returns the path of a request.
func (c *check) path() Text {
	var out Text
	rest := c.Path
	for _, at := range variable().FindAllStringSubmatchIndex(c.Path, -1) {
		start := len(c.Path) - len(rest)
		out = append(out, c.Path[start:at[0]])
		rest = c.Path[at[1]:]
		name := c.Path[at[2]:at[3]]
		for _, p := range c.Parameters {
			if p.In == InPath && p.Name == name {
				out = append(out, p.pathText(c.parameters[p])...)
			}
		}
	}
	return append(out, rest)
}

func (c *check) query(r *Request) {
	var query strings.Builder
	separator := "?"
	if strings.Contains(c.Path, separator) {
		separator = "&"
	}
	for _, p := range c.Parameters {
		v, given := c.parameters[p]
		if p.In != InQuery || !given {
			continue
		}
		if _, secret := v.(Secret); secret {
			r.Query[p.Name] = Text{v}
			continue
		}
		for _, pair := range p.pairs(v) {
			query.WriteString(separator + pair)
			separator = "&"
		}
	}
	r.URL = append(r.URL, query.String())
}

func (c *check) headers(r *Request) {
	var cookies Text
	if c.hasBody {
		r.Headers[headerContentType] = Text{c.Body.Media}
	}
	for _, p := range c.Parameters {
		v, given := c.parameters[p]
		switch {
		case !given:
		case p.In == InHeader:
			for name := range r.Headers {
				if strings.EqualFold(name, p.Name) {
					delete(r.Headers, name)
				}
			}
			r.Headers[p.Name] = p.simple(v)
		case p.In == InCookie:
			if len(cookies) > 0 {
				cookies = append(cookies, "; ")
			}
			if _, secret := v.(Secret); secret {
				cookies = append(cookies, escape(p.Name, false)+"=", v)
				continue
			}
			cookies = append(cookies, strings.Join(p.pairs(v), "; "))
		}
	}
	if len(cookies) > 0 {
		r.Headers["Cookie"] = cookies
	}
}

// joined returns a body with those lists of a form as texts that are one field.
func (b *Body) joined(v any) any {
	object, ok := v.(map[string]any)
	if !ok || len(b.separators) == 0 || mediaType(b.Media) != typeForm {
		return v
	}
	out := maps.Clone(object)
	for name, separator := range b.separators {
		list, ok := out[name].([]any)
		if !ok || holdsSecret(list) {
			continue
		}
		texts := make([]string, len(list))
		for i, item := range list {
			texts[i], _ = textOf(item)
		}
		out[name] = strings.Join(texts, separator)
	}
	return out
}

// sendable returns why a valid value cannot be a parameter.
func (p *Parameter) sendable(v any) error {
	if p.media != "" {
		return nil
	}
	if p.style != styleDeep && nested(v) {
		return errors.New("has lists or objects within each other, which its style cannot carry")
	}
	if p.style == styleDeep {
		if _, ok := v.(map[string]any); !ok {
			return errors.New("has the style deepObject and must be an object")
		}
		return nil
	}
	if p.In != InPath {
		return nil
	}
	var b strings.Builder
	for _, part := range p.pathText(v) {
		text, _ := part.(string)
		b.WriteString(text)
	}
	switch b.String() {
	case "", ".", "..", ";" + p.Name + "=":
		return errors.New("is empty or a step to another path")
	}
	return nil
}

// nested reports whether a list or an object has others in it.
func nested(v any) bool {
	var parts []any
	switch v := v.(type) {
	case []any:
		parts = v
	case map[string]any:
		parts = slices.Collect(maps.Values(v))
	}
	return slices.ContainsFunc(parts, func(part any) bool {
		_, scalar := textOf(part)
		return !scalar && part != nil
	})
}

// mediaType returns the type without parameters, in lower case.
func mediaType(contentType string) string {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media, _, _ = strings.Cut(contentType, ";")
	}
	return strings.ToLower(strings.TrimSpace(media))
}

func isJSON(contentType string) bool {
	media := mediaType(contentType)
	return media == typeJSON || media == "text/json" || strings.HasSuffix(media, "+json")
}

func isForm(contentType string) bool {
	media := mediaType(contentType)
	return media == typeForm || strings.HasPrefix(media, "multipart/")
}
