package openapi

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// server is the address of a service: a template over variables, which have defaults.
type server struct {
	template  string
	base      *url.URL // what a relative address is relative to
	variables map[string]serverVariable
}

type serverVariable struct {
	value   string // by default
	allowed []string
}

// serverOf returns the first server of an operation, of its path or of the description.
func serverOf(doc *openapi3.T, item *openapi3.PathItem, of *openapi3.Operation, base *url.URL) (server, error) {
	servers := doc.Servers
	if len(item.Servers) > 0 {
		servers = item.Servers
	}
	if of.Servers != nil && len(*of.Servers) > 0 {
		servers = *of.Servers
	}
	s := server{template: "/", base: base}
	if len(servers) > 0 && servers[0] != nil {
		s.template = servers[0].URL
		for name, v := range servers[0].Variables {
			if v == nil {
				continue
			}
			if s.variables == nil {
				s.variables = map[string]serverVariable{}
			}
			s.variables[name] = serverVariable{v.Default, v.Enum}
		}
	}
	for _, m := range variable().FindAllStringSubmatch(s.template, -1) {
		if _, known := s.variables[m[1]]; !known {
			return s, fmt.Errorf("the server %.200q has the variable %q, which is not described", s.template, m[1])
		}
	}
	_, err := s.address(nil)
	return s, err
}

// address returns the address of the service, without a slash at its end.
func (s server) address(values map[string]string) (string, error) {
	text := variable().ReplaceAllStringFunc(s.template, func(m string) string {
		name := m[1 : len(m)-1]
		if value, given := values[name]; given {
			return value
		}
		return s.variables[name].value
	})
	u, err := url.Parse(text)
	if err != nil {
		return "", fmt.Errorf("the server %.200q is not an address", text)
	}
	u = s.base.ResolveReference(u)
	switch {
	case u.Scheme == "" || u.Host == "":
		return "", fmt.Errorf("the server %.200q has no host: the description must have a server with a whole address, or "+
			"be read from an address itself", text)
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("the server %.200q has the scheme %q: only http and https can be called", text, u.Scheme)
	case u.User != nil:
		return "", errors.New("the server has a user in its address: use the authentication of the call")
	}
	u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = "", "", "", false
	return strings.TrimRight(u.String(), "/"), nil
}

// value returns the text that an argument gives a variable.
func (s server) value(name string, v any) (string, error) {
	text, ok := textOf(v)
	allowed := s.variables[name].allowed
	switch {
	case !ok:
		return "", errors.New("must be a text")
	case len(allowed) > 0 && !slices.Contains(allowed, text):
		return "", fmt.Errorf("must be one of %s, got %.80q", strings.Join(allowed, ", "), text)
	case !regexp.MustCompile(`^[A-Za-z0-9._~-]+$`).MatchString(text):
		return "", fmt.Errorf("must have letters, digits, dots, hyphens, underscores and tildes only, got %.80q", text)
	}
	return text, nil
}

// names returns the names of the variables.
func (s server) names() []string { return slices.Sorted(maps.Keys(s.variables)) }
