package hygiene

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Unlisted finds packages that a page does not describe: neither the package nor a folder above it is in the first
// column of one of the page's tables. It also finds duplicate names. The first name of a row is a folder from the root,
// the following ones are siblings.
func Unlisted(tree Tree, page string) []Violation {
	listed := map[string]bool{}
	var violations []Violation
	list := func(name string) {
		if listed[name] {
			violations = append(violations, Violation{name, "is twice in the page's table of packages"})
		}
		listed[name] = true
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if !strings.HasPrefix(line, "|") || len(cells) < 3 {
			continue
		}
		beside := ""
		for i, name := range quoted.FindAllStringSubmatch(cells[1], -1) {
			if i == 0 {
				beside = path.Dir(name[1])
				list(name[1])
				continue
			}
			list(path.Join(beside, name[1]))
		}
	}
	for _, folder := range tree.Folders() {
		if !slices.ContainsFunc(tree[folder], func(f *File) bool { return !f.Test }) {
			continue
		}
		at := folder
		for at != "." && !listed[at] {
			at = path.Dir(at)
		}
		if at == "." {
			violations = append(violations, Violation{folder, "is not in the page's table of packages; say there what it is"})
		}
	}
	return violations
}
