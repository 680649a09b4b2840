// Package excerpt shortens texts of others, such as answers and errors, for places with a limited length.
//
//	title := excerpt.Of(problem.Title, 1024)
package excerpt

import "strings"

const mark = "…"

// Of returns a text of at most limit bytes: the text, or its beginning up to the end of a character, with a mark.
func Of(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
