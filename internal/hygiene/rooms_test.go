package hygiene_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/hygiene"
)

// rooms are what the picture in docs/architecture.md shows: the subtrees of each room, and the rooms that it may
// import.
type rooms struct {
	trees   map[string][]string
	imports map[string][]string
}

func readRooms(t *testing.T) rooms {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	require.NoError(t, err)
	r := rooms{map[string][]string{}, map[string][]string{}}
	for _, m := range regexp.MustCompile(`(?m)^  (\w+)\["[^:"]+: ([^"]+)"\]$`).FindAllStringSubmatch(string(page), -1) {
		r.trees[m[1]] = strings.Fields(m[2])
	}
	for _, m := range regexp.MustCompile(`(?m)^  (\w+) --> (.+)$`).FindAllStringSubmatch(string(page), -1) {
		r.imports[m[1]] = strings.Split(m[2], " & ")
	}
	require.Len(t, r.trees, 10)
	return r
}

// of returns the room of a package; none for a tool of all rooms and for test code.
func (r rooms) of(pkg string) string {
	pkg = strings.TrimPrefix(pkg, hygiene.Module+"/")
	for room, trees := range r.trees {
		for _, tree := range trees {
			if pkg == tree || strings.HasPrefix(pkg, tree+"/") {
				return room
			}
		}
	}
	return ""
}

// TestRoomsAreThoseOfThePicture compares the imports of all packages with the picture: each arrow exists, and no import
// lacks its arrow.
func TestRoomsAreThoseOfThePicture(t *testing.T) {
	t.Parallel()
	r := readRooms(t)
	missing := map[string]string{}
	unused := map[string]bool{}
	for from, list := range r.imports {
		for _, to := range list {
			unused[from+" --> "+to] = true
		}
	}
	graph, err := hygiene.Graph(t.Context(), root, "./...")
	require.NoError(t, err)
	for pkg, imports := range graph {
		from := r.of(pkg)
		for _, imported := range imports {
			to := r.of(imported)
			if from == "" || to == "" || from == to {
				continue
			}
			delete(unused, from+" --> "+to)
			if !slices.Contains(r.imports[from], to) {
				missing[from+" --> "+to] = fmt.Sprintf("%s imports %s", pkg, imported)
			}
		}
	}
	require.Empty(t, missing, "docs/architecture.md has no such arrow")
	require.Empty(t, unused, "docs/architecture.md has an arrow for no import")
}
