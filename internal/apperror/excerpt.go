package apperror

import "strings"

// cut marks the end of a text that was shortened.
const cut = "…"

// Excerpt shortens a text of others, such as an answer or an error, to at most limit bytes: the text, or its beginning
// up to the end of a character, with a mark.
func Excerpt(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(cut)], "") + cut
}
