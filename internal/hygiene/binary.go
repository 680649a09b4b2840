package hygiene

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
)

// Binary reports what is wrong with a built binary: it is too large, or links a banned module.
func Binary(path string, maxBytes int64, banned ...string) ([]Violation, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("look at a built binary: %w", err)
	}
	built, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the build information of %q: %w", path, err)
	}
	return Built(filepath.Base(path), info.Size(), maxBytes, built, banned...), nil
}

// Built checks a binary by its size and its build information.
func Built(name string, size, maxBytes int64, built *debug.BuildInfo, banned ...string) []Violation {
	var violations []Violation
	if size >= maxBytes {
		violations = append(violations, Violation{name, fmt.Sprintf("has %d bytes; it must stay under %d", size, maxBytes)})
	}
	for _, dep := range built.Deps {
		for _, module := range banned {
			if dep.Path == module {
				violations = append(violations, Violation{name, "links " + module})
			}
		}
	}
	return violations
}
