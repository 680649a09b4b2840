package pages

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"github.com/signalbox-dev/signalbox/internal/hygiene"
)

// Links finds relative links in Markdown pages below root whose file or heading does not exist.
func Links(root string) ([]hygiene.Violation, error) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	return each(root, func(page, text string, find func(line int, violation string)) {
		for i, line := range prose(text) {
			for _, match := range link.FindAllStringSubmatch(line, -1) {
				if violation := broken(page, match[1]); violation != "" {
					find(i+1, violation)
				}
			}
		}
	})
}

// each reads the pages below root, and returns what visit finds in them.
func each(root string, visit func(page, text string,
	find func(line int, violation string))) ([]hygiene.Violation, error) {
	pages, err := markdown(root)
	if err != nil {
		return nil, err
	}
	var violations []hygiene.Violation
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return nil, fmt.Errorf("read a page: %w", err)
		}
		name, err := filepath.Rel(root, page)
		if err != nil {
			return nil, fmt.Errorf("name a page: %w", err)
		}
		visit(page, string(text), func(line int, violation string) {
			violations = append(violations,
				hygiene.Violation{Where: fmt.Sprintf("%s:%d", filepath.ToSlash(name), line), What: violation})
		})
	}
	return violations, nil
}

func markdown(root string) ([]string, error) {
	var pages []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && hygiene.Skipped(d.Name()):
			return fs.SkipDir
		case !d.IsDir() && filepath.Ext(path) == ".md":
			pages = append(pages, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find the pages below %q: %w", root, err)
	}
	return pages, nil
}

// prose returns a page's lines with code blanked out; line numbers stay.
func prose(text string) []string {
	inline := regexp.MustCompile("`[^`]*`")
	lines := strings.Split(text, "\n")
	fenced := false
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			lines[i] = ""
			continue
		}
		if fenced {
			lines[i] = ""
			continue
		}
		lines[i] = inline.ReplaceAllString(line, "")
	}
	return lines
}

func broken(page, target string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return ""
	}
	file, anchor, _ := strings.Cut(target, "#")
	path := page
	if file != "" {
		path = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Sprintf("links to %q, which does not exist", target)
	}
	if anchor == "" || info.IsDir() || filepath.Ext(path) != ".md" {
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("links to %q, which cannot be read: %v", target, err)
	}
	fenced := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if !fenced && strings.HasPrefix(line, "#") && slug(line) == anchor {
			return ""
		}
	}
	return fmt.Sprintf("links to %q, but %q has no such heading", target, filepath.Base(path))
}

// slug returns a heading's anchor as GitHub makes it: lower case, words joined by hyphens, punctuation dropped.
func slug(heading string) string {
	heading = strings.ToLower(strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(heading), "#")))
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return r
		}
		return -1
	}, heading)
}
