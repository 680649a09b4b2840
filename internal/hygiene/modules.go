package hygiene

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/mod/modfile"
)

// Requirements finds modules below root whose go.mod requires the banned module, directly or indirectly, except those
// in the named folders.
func Requirements(root, banned string, except ...string) ([]Violation, error) {
	var violations []Violation
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && Skipped(d.Name()):
			return fs.SkipDir
		case d.IsDir() || d.Name() != "go.mod":
			return nil
		}
		found, err := requires(root, path, banned, except)
		violations = append(violations, found...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the modules below %q: %w", root, err)
	}
	return violations, nil
}

func requires(root, path, banned string, except []string) ([]Violation, error) {
	folder, err := filepath.Rel(root, filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	parsed, err := modfile.Parse(path, source, nil)
	if err != nil {
		return nil, err
	}
	asks := slices.ContainsFunc(parsed.Require, func(r *modfile.Require) bool { return r.Mod.Path == banned })
	if !asks || slices.Contains(except, filepath.ToSlash(folder)) {
		return nil, nil
	}
	return []Violation{{filepath.ToSlash(folder), "requires " + banned + ", which only this may: " + fmt.Sprint(except)}},
		nil
}
