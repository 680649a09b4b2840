package hygiene

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// File is one Go file.
type File struct {
	Source    []byte
	Test      bool // a _test.go file
	Kit       bool // of a package that only tests import, by its path: below test, or named …test as httptest is
	Generated bool // carries the standard header of generated code
}

// Tree holds every Go package below a folder, by folder relative to the root.
type Tree map[string][]*File

// Folders returns the folders in order.
func (t Tree) Folders() []string {
	return slices.Sorted(maps.Keys(t))
}

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
	parsed, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	relative, err := filepath.Rel(root, filepath.Dir(path))
	if err != nil {
		return err
	}
	folder := filepath.ToSlash(relative)
	t[folder] = append(t[folder], &File{
		Source:    source,
		Test:      strings.HasSuffix(path, "_test.go"),
		Kit:       strings.HasPrefix(folder, "test/") || strings.HasSuffix(folder, "test"),
		Generated: ast.IsGenerated(parsed),
	})
	return nil
}
