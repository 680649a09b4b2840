package pages

import (
	"path/filepath"
	"regexp"

	"github.com/signalbox-dev/signalbox/internal/hygiene"
)

// Readers finds pages below root whose first paragraph does not begin with who the page is for and what it answers:
// "For READERS: …". Decision records, whose names begin with a number, have a form of their own.
func Readers(root string) ([]hygiene.Violation, error) {
	head := regexp.MustCompile(`^(?:<!--[^\n]*-->\n\n)?# [^\n]+\n\nFor [^:\n]+(?:\n[^:\n]+)?: `)
	record := regexp.MustCompile(`^\d{4}-`)
	return each(root, func(page, text string, find func(line int, violation string)) {
		if !record.MatchString(filepath.Base(page)) && !head.MatchString(text) {
			find(1, `does not begin with who it is for and what it answers: "For READERS: …" below the title`)
		}
	})
}
