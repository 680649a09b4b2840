package pages

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/hygiene"
)

// Columns returns the columns of the tables that the Go code below root prints: the heads in each call of output.Cells.
// Those of the wide format alone begin with a plus.
func Columns(root string) ([][]string, error) {
	var tables [][]string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if columns := columnsOf(n); len(columns) > 0 {
				tables = append(tables, columns)
			}
			return true
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the tables of %q: %w", root, err)
	}
	return tables, nil
}

// columnsOf returns the heads in a call of output.Cells: every other argument.
func columnsOf(n ast.Node) (columns []string) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || function.Sel.Name != "Cells" {
		return nil
	}
	for i := 0; i < len(call.Args); i += 2 {
		literal, ok := call.Args[i].(*ast.BasicLit)
		if !ok {
			return nil
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			return nil
		}
		columns = append(columns, text)
	}
	return columns
}

// Cells returns the words of a column, counted from 0, in the tables of a page that begin with head: without
// backquotes, each word once.
func Cells(page, head string, column int) ([]string, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, fmt.Errorf("read a page: %w", err)
	}
	var words []string
	inside := false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, head):
			inside = true
		case !strings.HasPrefix(line, "|"):
			inside = false
		case inside && !strings.HasPrefix(line, "|-"):
			cell := strings.Split(line, "|")[column+1]
			for word := range strings.FieldsFuncSeq(cell, func(r rune) bool { return strings.ContainsRune(" `,*\n", r) }) {
				if !slices.Contains(words, word) {
					words = append(words, word)
				}
			}
		}
	}
	return words, nil
}

// Constants returns the texts of the constants of a type in a Go file, except the empty one.
func Constants(file, typeName string) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		return nil, fmt.Errorf("read constants: %w", err)
	}
	var texts []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		typed, ok := spec.Type.(*ast.Ident)
		if !ok || typed.Name != typeName {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
			if text, err := strconv.Unquote(literal.Value); err == nil && text != "" {
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts, nil
}

// Tables finds tables in blocks of the pages below root whose columns match none of the tables, plain or wide. A table
// is recognized by its head: three or more names in capitals.
func Tables(root string, tables [][]string) ([]hygiene.Violation, error) {
	known := map[string]bool{}
	for _, columns := range tables {
		var plain, wide []string
		for _, column := range columns {
			name, hidden := strings.CutPrefix(column, "+")
			name = strings.TrimLeft(name, "#-")
			wide = append(wide, name)
			if !hidden {
				plain = append(plain, name)
			}
		}
		known[strings.Join(plain, "  ")], known[strings.Join(wide, "  ")] = true, true
	}
	head := regexp.MustCompile(`^[A-Z]+(?: [A-Z]+)*(?:  [A-Z]+(?: [A-Z]+)*){2,}$`)
	gap := regexp.MustCompile(` {2,}`)
	return each(root, func(_, text string, find func(line int, violation string)) {
		fenced := false
		for i, line := range strings.Split(text, "\n") {
			line = gap.ReplaceAllString(strings.TrimSpace(line), "  ")
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			if fenced && head.MatchString(line) && !known[line] {
				find(i+1, fmt.Sprintf("shows a table that no command prints: %q", line))
			}
		}
	})
}
