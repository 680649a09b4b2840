// Package vocabulary describes the keys of workflow documents: which object has which keys, what each key takes, and what
// it means. Editors get completion and documentation from it, and the JSON Schema of documents.
//
//	v := vocabulary.New()
//	for _, key := range v.Type(vocabulary.Document).Keys {
//		fmt.Println(key.Name, key.Doc)
//	}
//
// Package dsl decides which documents are valid; a test of this package compares both, so that neither has a key that
// the other refuses. This package does not read documents.
package vocabulary

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Form is the form of a value.
type Form int

// The forms of values.
const (
	Any        Form = iota // any value; its texts may be expressions
	Text                   // a text
	Expression             // a text that is an expression, with or without ${ }
	Wrapped                // a text that is an expression in ${ }
	Integer
	Boolean
	Structure // an object with Keys
	Map       // any names, with values of Item
	List      // of Item
	Named     // a list of objects with one key each, which is a name, and with a value of Item
	Choice    // one of Options
	Variant   // an object of one of Options, which its keys select
)

// Target is what a text names.
type Target string

// The targets of names: a task of the same list, and the sections of use.
const (
	NoTarget              Target = ""
	TargetTask            Target = "do"
	TargetFunctions       Target = "functions"
	TargetErrors          Target = "errors"
	TargetRetries         Target = "retries"
	TargetTimeouts        Target = "timeouts"
	TargetAuthentications Target = "authentications"
	TargetSecrets         Target = "secrets"
)

// Names of types that programs ask for.
const (
	Document = "document" // a whole document
	Task     = "task"     // a task, without its name
)

// Type describes a value.
type Type struct {
	// Name identifies the type.
	Name string
	Form Form
	// Keys are those of a Structure. OneOf are keys of which it has exactly one, AnyOf those of which it has one or more.
	Keys         []Key
	OneOf, AnyOf []string
	// Item is the name of the type of the values of a Map, a List or a Named.
	Item string
	// Options are the names of the types of a Choice or a Variant.
	Options []string
	// Words are the texts that a Text may be; empty: any. Pattern is a regular expression for them otherwise.
	Words   []string
	Pattern string
	// Target is what a text names.
	Target Target
	// Least is the smallest number of members or items.
	Least int
}

// Key is one key of an object.
type Key struct {
	Name     string
	Type     string
	Required bool
	Doc      string
}

// Vocabulary holds the types of documents. It is immutable.
type Vocabulary struct{ types map[string]*Type }

// New returns the vocabulary of the language.
func New() *Vocabulary {
	v := &Vocabulary{types: map[string]*Type{}}
	for _, t := range slices.Concat(documentTypes(), taskTypes(), callTypes(), eventTypes()) {
		v.types[t.Name] = &t
	}
	return v
}

// Type returns a type by its name, which must be one of the vocabulary.
func (v *Vocabulary) Type(name string) *Type { return v.types[name] }

// Types returns all types, by name.
func (v *Vocabulary) Types() []*Type {
	return slices.SortedFunc(maps.Values(v.types), func(a, b *Type) int { return cmp.Compare(a.Name, b.Name) })
}

// Key returns a key of an object by its name; nil if it has none.
func (t *Type) Key(name string) *Key {
	for i := range t.Keys {
		if t.Keys[i].Name == name {
			return &t.Keys[i]
		}
	}
	return nil
}

// Object is what Resolve reads of an object in a document.
type Object interface {
	// Has reports whether the object has a key.
	Has(key string) bool
	// Text returns the text of the value of a key; empty if it has none.
	Text(key string) string
}

// Resolve returns the types that a value may have, without choices and variants. object is the value if it is an object,
// and nil otherwise; its keys exclude the variants that they do not fit.
func (v *Vocabulary) Resolve(t *Type, object Object) []*Type {
	switch t.Form {
	case Choice:
		var out []*Type
		for _, name := range t.Options {
			if option := v.types[name]; object == nil || option.composite() {
				out = append(out, v.Resolve(option, object)...)
			}
		}
		return out
	case Variant:
		return v.variants(t, object)
	case Any, Text, Expression, Wrapped, Integer, Boolean, Structure, Map, List, Named:
	}
	return []*Type{t}
}

// composite reports whether an object can be of the type.
func (t *Type) composite() bool {
	return slices.Contains([]Form{Any, Structure, Map, Choice, Variant}, t.Form)
}

// variants returns the options of a variant that the keys of an object select. The first key of an option selects it; a
// key that a selected option has among its others, as for has do, selects nothing. An option whose first key has one of
// its words excludes those that take any text there.
func (v *Vocabulary) variants(t *Type, object Object) []*Type {
	var all, selected []*Type
	for _, name := range t.Options {
		option := v.types[name]
		all = append(all, option)
		if object != nil && object.Has(option.Keys[0].Name) && v.fits(option, object) {
			selected = append(selected, option)
		}
	}
	selected = slices.DeleteFunc(slices.Clone(selected), func(option *Type) bool {
		first := option.Keys[0].Name
		return slices.ContainsFunc(selected, func(other *Type) bool {
			named := object.Text(first) != "" && v.hasWords(other) && !v.hasWords(option)
			return other.Keys[0].Name == first && named || other.Keys[0].Name != first && other.Key(first) != nil
		})
	})
	if len(selected) == 0 {
		return all
	}
	return selected
}

func (v *Vocabulary) hasWords(option *Type) bool { return len(v.types[option.Keys[0].Type].Words) > 0 }

// fits reports whether the text that selects an option is one of its words.
func (v *Vocabulary) fits(option *Type, object Object) bool {
	first := option.Keys[0]
	words, text := v.types[first.Type].Words, object.Text(first.Name)
	return len(words) == 0 || text == "" || slices.ContainsFunc(words, func(word string) bool {
		return strings.EqualFold(word, text)
	})
}
