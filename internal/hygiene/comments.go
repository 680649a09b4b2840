package hygiene

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// DocComments finds comments of package-level declarations that do not begin with the name of the declaration, comments
// of their members that begin with another name, and comments that begin with "This file". Test files are left out but
// for the last: the comments of tests say what holds.
func DocComments(tree Tree) []Violation {
	var violations []Violation
	for _, folder := range tree.Folders() {
		for _, f := range tree[folder] {
			parsed := f.parse(folder)
			if f.Generated || parsed == nil {
				continue
			}
			for _, group := range parsed.Comments {
				if strings.HasPrefix(group.Text(), "This file") {
					violations = append(violations,
						Violation{folder, fmt.Sprintf("%q: say what the declarations below do", firstLine(group))})
				}
			}
			if f.Test {
				continue
			}
			for _, decl := range parsed.Decls {
				for _, d := range documented(decl) {
					if text := d.doc.Text(); text != "" && !d.right(f, text) {
						violations = append(violations,
							Violation{folder, fmt.Sprintf("the comment of %s begins otherwise: %q", d.name, firstLine(d.doc))})
					}
				}
			}
		}
	}
	return violations
}

// description is a declared name with its comment.
type description struct {
	name   string
	doc    *ast.CommentGroup
	member bool // of a group, a struct or an interface
}

// documented returns what a declaration declares, and the members of it.
func documented(decl ast.Decl) []description {
	var found []description
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		found = append(found, description{name: decl.Name.Name, doc: decl.Doc})
	case *ast.GenDecl:
		grouped := decl.Lparen.IsValid()
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				doc := spec.Doc
				if doc == nil && !grouped {
					doc = decl.Doc
				}
				found = append(found, description{name: spec.Name.Name, doc: doc})
			case *ast.ValueSpec:
				for i, name := range spec.Names {
					d := description{name: name.Name, member: grouped}
					switch { // one comment describes several names, and begins with the first
					case i == 0 && grouped:
						d.doc = spec.Doc
					case i == 0:
						d.doc = decl.Doc
					}
					found = append(found, d)
				}
			}
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && len(field.Names) == 1 {
				found = append(found, description{field.Names[0].Name, field.Doc, true})
			}
			return true
		})
	}
	return found
}

// identifier matches a word that is written as names of more than one word are, and as no word of a sentence is.
var identifier = regexp.MustCompile(`^[a-zA-Z]*[a-z0-9][A-Z]\w*$`)

// right reports whether a comment begins with the name, after an article or not. The comment of a member is free,
// unless it begins with another name, and so are those of tests in a kit.
func (d description) right(f *File, text string) bool {
	words := strings.Fields(text)
	if len(words) > 1 && (words[0] == "A" || words[0] == "An" || words[0] == "The") {
		words = words[1:]
	}
	word := strings.TrimSuffix(strings.TrimRight(words[0], ".,:;"), "'s")
	switch {
	case word == d.name || d.name == "_":
		return true
	case d.member:
		return !identifier.MatchString(word)
	}
	return f.Kit && strings.HasPrefix(d.name, "test")
}

func firstLine(doc *ast.CommentGroup) string {
	line, _, _ := strings.Cut(doc.Text(), "\n")
	return line
}

// parse returns the syntax of the file; nil if it does not parse, which Load reports.
func (f *File) parse(name string) *ast.File {
	parsed, err := parser.ParseFile(token.NewFileSet(), name, f.Source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	return parsed
}

// reference matches a name of a package with an exported name in it, as in "store.Open" or "[store.Open]", and not the
// end of a longer name.
var reference = regexp.MustCompile(`(?:^|[\s(\["'*&,;])([a-z][a-zA-Z0-9]*)\.([A-Z][A-Za-z0-9_]*)`)

// NamedPackages finds references of comments to something that does not exist: a name, a point and an exported name,
// where the first is neither a package of the tree that declares the other one, nor another package that the tree
// imports, nor a value or type with such a member, nor what the comment itself declares.
func NamedPackages(tree Tree) []Violation {
	in := index(tree)
	var violations []Violation
	for _, folder := range tree.Folders() {
		for _, f := range tree[folder] {
			parsed := f.parse(folder)
			if parsed == nil || f.Generated {
				continue
			}
			for _, group := range parsed.Comments {
				for _, found := range reference.FindAllStringSubmatch(group.Text(), -1) {
					if !in.has(found[1], found[2]) && !introduced(group.Text(), found[1]) {
						violations = append(violations,
							Violation{folder, fmt.Sprintf("a comment names %s.%s, which does not exist", found[1], found[2])})
					}
				}
			}
		}
	}
	return violations
}

// identifiers are those that a tree has.
type identifiers struct {
	declared map[string]map[string]bool // by the name of the package
	imported map[string]bool            // names of packages
	members  map[[2]string]bool         // of values and types
}

// has reports whether there is such a name in a package, or such a member.
func (in identifiers) has(name, member string) bool {
	if ours, ok := in.declared[name]; ok && ours[member] || !ok && in.imported[name] {
		return true
	}
	return in.members[[2]string{name, member}]
}

func index(tree Tree) identifiers {
	in := identifiers{map[string]map[string]bool{}, map[string]bool{}, map[[2]string]bool{}}
	for _, folder := range tree.Folders() {
		for _, f := range tree[folder] {
			if parsed := f.parse(folder); parsed != nil {
				in.add(parsed)
			}
		}
	}
	return in
}

// add adds the identifiers of a file.
func (in identifiers) add(file *ast.File) {
	name := strings.TrimSuffix(file.Name.Name, "_test")
	if in.declared[name] == nil {
		in.declared[name] = map[string]bool{}
	}
	for _, decl := range file.Decls {
		for _, d := range documented(decl) {
			in.declared[name][d.name] = true
		}
	}
	for _, spec := range file.Imports {
		in.imported[importName(spec)] = true
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if value, ok := n.X.(*ast.Ident); ok {
				in.members[[2]string{value.Name, n.Sel.Name}] = true
			}
		case *ast.TypeSpec:
			for _, field := range fields(n) {
				in.members[[2]string{n.Name.Name, field}] = true
			}
		}
		return true
	})
}

// introduced reports whether the code of a comment gives a value the name.
func introduced(text, name string) bool {
	return regexp.MustCompile(`(?m)(^|[\s,(])` + name + `(, \w+)* :?= |\bvar ` + name + `\b|\b` + name +
		` \*?[a-z]+\.[A-Z]`).MatchString(text)
}

// fields returns the names of the fields of a struct.
func fields(spec *ast.TypeSpec) []string {
	var found []string
	if s, ok := spec.Type.(*ast.StructType); ok {
		for _, field := range s.Fields.List {
			for _, name := range field.Names {
				found = append(found, name.Name)
			}
		}
	}
	return found
}

// importName returns the name under which a file uses an import: its alias, or the last element of the path without a
// version.
func importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	location, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return ""
	}
	name := path.Base(location)
	if regexp.MustCompile(`^v\d+$`).MatchString(name) {
		name = path.Base(path.Dir(location))
	}
	return strings.TrimSuffix(strings.TrimPrefix(name, "go-"), "-go")
}
