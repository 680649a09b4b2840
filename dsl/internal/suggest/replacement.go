package suggest

import (
	"regexp"
	"strconv"
)

// Replacement returns the replacement that a suggestion of Closest, or one to quote a value, proposes. word is what it
// replaces where the suggestion names that.
func Replacement(suggestion string) (word, replacement string, ok bool) {
	const quoted = `("(?:[^"\\]|\\.)*")`
	found := regexp.MustCompile(`^(?:` + quoted + `: )?(?:did you mean|quote it:) ` + quoted + `\??$`).
		FindStringSubmatch(suggestion)
	if found == nil {
		return "", "", false
	}
	replacement, err := strconv.Unquote(found[2])
	if err != nil {
		return "", "", false
	}
	if found[1] != "" {
		if word, err = strconv.Unquote(found[1]); err != nil {
			return "", "", false
		}
	}
	return word, replacement, true
}
