package hygiene

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// File is one parsed Go file.
type File struct {
	Path      string // relative to the root, with slashes
	AST       *ast.File
	Source    []byte
	Test      bool // a _test.go file
	Kit       bool // of a package that only tests import, by its path: below test, or named …test as httptest is
	Generated bool // carries the standard header of generated code
	fset      *token.FileSet
}

// At renders the position of a node as file:line.
func (f *File) At(pos token.Pos) string {
	return fmt.Sprintf("%s:%d", f.Path, f.fset.Position(pos).Line)
}

// Line returns the line of a position.
func (f *File) Line(pos token.Pos) int { return f.fset.Position(pos).Line }

// Tree holds every Go package below a folder, by folder relative to the root.
type Tree map[string][]*File

// Folders returns the folders in order.
func (t Tree) Folders() []string {
	folders := make([]string, 0, len(t))
	for folder := range t {
		folders = append(folders, folder)
	}
	slices.Sort(folders)
	return folders
}

// Files returns the hand-written files that keep accepts, in order.
func (t Tree) Files(keep func(*File) bool) []*File {
	var files []*File
	for _, folder := range t.Folders() {
		for _, f := range t[folder] {
			if !f.Generated && keep(f) {
				files = append(files, f)
			}
		}
	}
	return files
}

// All accepts every file.
func All(*File) bool { return true }

// Shipped accepts files that are not tests.
func Shipped(f *File) bool { return !f.Test }

// Load parses every Go file below root. Folders that the go tool skips (testdata, names that start with . or _) and
// the folder of built binaries are left out.
func Load(root string) (Tree, error) {
	tree := Tree{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && Skipped(d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		return tree.add(root, path)
	})
	if err != nil {
		return nil, fmt.Errorf("read the sources below %q: %w", root, err)
	}
	return tree, nil
}

// Skipped reports by its name whether a folder contains nothing of ours to check.
func Skipped(folder string) bool {
	return strings.HasPrefix(folder, ".") || strings.HasPrefix(folder, "_") ||
		slices.Contains([]string{"testdata", "bin", "node_modules"}, folder)
}

func (t Tree) add(root, path string) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	relative, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	relative = filepath.ToSlash(relative)
	folder := filepath.ToSlash(filepath.Dir(relative))
	t[folder] = append(t[folder], &File{
		Path:      relative,
		AST:       parsed,
		Source:    source,
		Test:      strings.HasSuffix(path, "_test.go"),
		Kit:       strings.HasPrefix(folder, "test/") || strings.HasSuffix(folder, "test"),
		Generated: ast.IsGenerated(parsed),
		fset:      fset,
	})
	return nil
}
