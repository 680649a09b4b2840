package pages

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/hygiene"
)

// Names finds inline code in the pages below root that matches a pattern as a whole and is not known. Text after a
// brace, such as the labels of a metric, is ignored.
func Names(root string, pattern *regexp.Regexp, known func(name string) bool) ([]hygiene.Violation, error) {
	span := regexp.MustCompile("`([^`{]+)[^`]*`")
	return each(root, func(_, text string, find func(line int, violation string)) {
		fenced := false
		for i, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			}
			if fenced {
				continue
			}
			for _, code := range span.FindAllStringSubmatch(line, -1) {
				if name := code[1]; pattern.FindString(name) == name && !known(name) {
					find(i+1, fmt.Sprintf("names %q, which there is not", name))
				}
			}
		}
	})
}
