// Package schema reads settings into a struct: the tags define the keys with their three spellings; the package parses
// texts to values and reads YAML files.
//
//	s := schema.Of(cfg) // a pointer to a struct of structs
//	err := s.ByPath["store.dsn"].Set("signalbox.db")
//	sources, violations := s.ReadFile("signalbox.yaml", content)
//
// The tags are yaml (the key's name; "-" leaves a field out), default, doc, and kind ([File], [SecretFile],
// [Pairs]). The package does not depend on the meaning of the keys.
package schema

import (
	"reflect"
	"strings"
)

// Prefix begins every variable of Signalbox.
const Prefix = "SIGNALBOX_"

// Pairs is the kind of a list of NAME=VALUE, which a file may write as a mapping.
const Pairs = "pairs"

// Kinds of paths of files, which must be readable. Other users must have no access to a SecretFile.
const (
	File       = "file"
	SecretFile = "secretfile"
)

// Key is one setting: a leaf field of the struct with its three spellings.
type Key struct {
	Path    string // temporal.tls.cert_file
	Default string
	Doc     string
	Kind    string // File, SecretFile, Pairs, or empty
	Value   reflect.Value
}

// IsFile reports whether the value is the path of a file.
func (k Key) IsFile() bool { return k.Kind == File || k.Kind == SecretFile }

// Flag returns the name of the key's flag, without leading dashes.
func (k Key) Flag() string {
	return strings.NewReplacer(".", "-", "_", "-").Replace(k.Path)
}

// Variable returns the name of the key's environment variable.
func (k Key) Variable() string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(k.Path, ".", "_"))
}

// Section is an inner struct: a mapping in the file.
type Section struct {
	Path string
	Doc  string
}

// Schema holds every key and section of one struct, in the order of its fields; the keys' values point into that
// struct.
type Schema struct {
	Keys     []Key
	ByPath   map[string]Key
	Sections []Section
	Names    map[string][]string // section path -> names of its children
}

// Of returns the schema of the struct that cfg points to.
func Of(cfg any) *Schema {
	s := &Schema{ByPath: map[string]Key{}, Names: map[string][]string{}}
	s.walk(reflect.ValueOf(cfg).Elem(), "")
	return s
}

func (s *Schema) walk(structure reflect.Value, prefix string) {
	for i := range structure.NumField() {
		tag := structure.Type().Field(i).Tag
		name := tag.Get("yaml")
		if name == "-" {
			continue
		}
		s.Names[prefix] = append(s.Names[prefix], name)
		path := Join(prefix, name)
		if field := structure.Field(i); field.Kind() == reflect.Struct {
			s.Sections = append(s.Sections, Section{Path: path, Doc: tag.Get("doc")})
			s.walk(field, path)
			continue
		}
		k := Key{Path: path, Default: tag.Get("default"), Doc: tag.Get("doc"), Kind: tag.Get("kind"),
			Value: structure.Field(i)}
		s.Keys = append(s.Keys, k)
		s.ByPath[path] = k
	}
}

func (s *Schema) isSection(path string) bool {
	_, ok := s.Names[path]
	return ok
}

// Join returns the path of a name within a section; the top level is the empty section.
func Join(section, name string) string {
	if section == "" {
		return name
	}
	return section + "." + name
}
