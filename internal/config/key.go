package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Prefix begins every variable of ours.
const Prefix = "SIGNALBOX_"

// key is one setting: a leaf of Config with its three spellings.
type key struct {
	path  string // temporal.tls.cert_file
	def   string
	doc   string
	kind  string // "file" for a path that must be readable
	value reflect.Value
}

func (k key) flag() string {
	return strings.NewReplacer(".", "-", "_", "-").Replace(k.path)
}

func (k key) variable() string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(k.path, ".", "_"))
}

func (k key) typeName() string { return typeName(k.value, k.kind) }

// section is an inner struct of Config: a mapping in the file.
type section struct {
	path string
	doc  string
}

// schema is every key and section of one Config, in the order of the structs; the keys' values point
// into that Config.
type schema struct {
	keys     []key
	byPath   map[string]key
	sections []section
	names    map[string][]string // section path -> names of its children
}

func schemaOf(cfg *Config) *schema {
	s := &schema{byPath: map[string]key{}, names: map[string][]string{}}
	s.walk(reflect.ValueOf(cfg).Elem(), "")
	return s
}

func (s *schema) walk(structure reflect.Value, prefix string) {
	for i := range structure.NumField() {
		tag := structure.Type().Field(i).Tag
		name := tag.Get("yaml")
		if name == "-" {
			continue
		}
		s.names[prefix] = append(s.names[prefix], name)
		path := join(prefix, name)
		if field := structure.Field(i); field.Kind() == reflect.Struct {
			s.sections = append(s.sections, section{path: path, doc: tag.Get("doc")})
			s.walk(field, path)
			continue
		}
		k := key{path: path, def: tag.Get("default"), doc: tag.Get("doc"), kind: tag.Get("kind"), value: structure.Field(i)}
		s.keys = append(s.keys, k)
		s.byPath[path] = k
	}
}

func (s *schema) isSection(path string) bool {
	_, ok := s.names[path]
	return ok
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// Default returns the configuration of a process that was told nothing.
func Default() *Config {
	cfg := &Config{}
	for _, k := range schemaOf(cfg).keys {
		if err := setText(k.value, k.def); err != nil {
			panic(fmt.Sprintf("default of %s: %v", k.path, err)) // a wrong tag; the package's tests load every default
		}
	}
	return cfg
}
