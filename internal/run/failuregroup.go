package run

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
)

const (
	// failureGroupLength is the length of a key, in hexadecimal digits.
	failureGroupLength = 20
	// maxCauseText is how many bytes of a title count for the cause of a failure.
	maxCauseText = 500
	// minHex is the shortest word of hexadecimal digits that counts as an identifier.
	minHex = 8
	// uuidLength is the length of a UUID with its hyphens.
	uuidLength = 36
	// anyValue stands for a part of a text that differs between failures of the same cause.
	anyValue = "#"
)

// failureGroupKey returns the key of the group of the runs of a workflow that failed with an error like this one: at
// the same task, with the same cause. The version is not part of a group: an error that a new version does not correct
// is the same error. The error may be nil.
func failureGroupKey(workflow string, failed *dsl.Error) string {
	var p dsl.Error
	if failed != nil {
		p = *failed
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{workflow, failedAt(p), failureCause(p)}, "\x00")))
	return hex.EncodeToString(sum[:])[:failureGroupLength]
}

// checkFailureGroup returns an error for a text that is not the key of a failure group. An empty
// text selects no group.
func checkFailureGroup(key string) error {
	if key == "" || len(key) == failureGroupLength && strings.Trim(key, "0123456789abcdef") == "" {
		return nil
	}
	return apperror.New(apperror.Invalid, apperror.InvalidArgument,
		"failure group %q: a key has %d hexadecimal digits", key, failureGroupLength).
		WithField("failure_group", "is not the key of a failure group")
}

// failureCause returns the type, the status and the title of an error, without what differs between failures of the
// same cause: numbers, identifiers and quoted values. An error without a title is described by its detail.
func failureCause(p dsl.Error) string {
	text := p.Title
	if text == "" {
		text = p.Detail
	}
	return generalized(p.Type) + " " + strconv.Itoa(p.Status) + " " + generalized(text)
}

// failedAt returns the names in the pointer of the task that failed. Positions are left out: a version that adds a task
// before it has the same task. A workflow may define another instance for an error, with values of the run.
func failedAt(p dsl.Error) string {
	if !strings.HasPrefix(p.Instance, "/do/") {
		return generalized(p.Instance)
	}
	names := slices.DeleteFunc(strings.Split(p.Instance, "/"), func(part string) bool {
		return part != "" && strings.Trim(part, "0123456789") == ""
	})
	return strings.Join(names, "/")
}

// generalized returns a text without its values: it replaces numbers, identifiers and quoted values, and writes each
// sequence of spaces as one.
func generalized(text string) string {
	if len(text) > maxCauseText {
		text = strings.ToValidUTF8(text[:maxCauseText], "")
	}
	var out strings.Builder
	for before := ' '; text != ""; {
		c, size := utf8.DecodeRuneInString(text)
		switch quoted, word := quotedValue(text, before), wordOf(text); {
		case quoted > 0:
			out.WriteString(anyValue)
			c, size = '"', quoted
		case word > 0:
			out.WriteString(wordWithoutValue(text[:word]))
			c, size = 'x', word
		case unicode.IsSpace(c):
			if !unicode.IsSpace(before) {
				out.WriteByte(' ')
			}
		default:
			out.WriteRune(c)
		}
		before, text = c, text[size:]
	}
	return strings.TrimSpace(out.String())
}

// quotedValue returns the length of the quoted value that a text begins with; 0 if there is none. An apostrophe within
// a word is no quotation mark.
func quotedValue(text string, before rune) int {
	open, size := utf8.DecodeRuneInString(text)
	closing := closingMark(open)
	if closing == 0 || open == '\'' && letterOrDigit(before) {
		return 0
	}
	for at, c := range text[size:] {
		end := size + at + utf8.RuneLen(c)
		if next, _ := utf8.DecodeRuneInString(text[end:]); c == closing && (open != '\'' || !letterOrDigit(next)) {
			return end
		}
	}
	return 0
}

// closingMark returns the mark that ends a quotation; 0 where open begins none.
func closingMark(open rune) rune {
	switch open {
	case '"', '`', '\'':
		return open
	case '“':
		return '”'
	case '‘':
		return '’'
	case '«':
		return '»'
	}
	return 0
}

// wordOf returns the length of the word that a text begins with: letters, digits, and hyphens, points, colons and
// underscores between them, as in UUIDs, times and addresses.
func wordOf(text string) (length int) {
	for at, c := range text {
		switch {
		case letterOrDigit(c):
			length = at + utf8.RuneLen(c)
		case length == 0 || !strings.ContainsRune("-.:_", c) || at != length:
			return length
		}
	}
	return length
}

// wordWithoutValue replaces the UUIDs of a word, and the identifiers and numbers in its parts, which are separated by
// hyphens, points, colons and underscores.
func wordWithoutValue(word string) string {
	var out strings.Builder
	for word != "" {
		if uuid.Validate(word[:min(len(word), uuidLength)]) == nil {
			out.WriteString(anyValue)
			word = word[uuidLength:]
			continue
		}
		end := strings.IndexAny(word, "-.:_")
		if end < 0 {
			end = len(word)
		}
		out.WriteString(partWithoutValue(word[:end]))
		if end < len(word) {
			out.WriteByte(word[end])
			end++
		}
		word = word[end:]
	}
	// A number with a fraction, a date, a time, an address and a UUID are one value, however many parts they have.
	text := out.String()
	for _, separator := range []string{"-", ".", ":", "_"} {
		for joined := anyValue + separator + anyValue; strings.Contains(text, joined); {
			text = strings.ReplaceAll(text, joined, anyValue)
		}
	}
	return text
}

// partWithoutValue replaces a part of a word that is an identifier or a number; of others, the digits.
func partWithoutValue(part string) string {
	if !strings.ContainsAny(part, "0123456789") {
		return part
	}
	if len(part) >= minHex && strings.Trim(strings.ToLower(part), "0123456789abcdef") == "" {
		return anyValue
	}
	var out strings.Builder
	digits := false
	for _, c := range part {
		digit := unicode.IsDigit(c)
		switch {
		case !digit:
			out.WriteRune(c)
		case !digits:
			out.WriteString(anyValue)
		}
		digits = digit
	}
	return out.String()
}

func letterOrDigit(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }

// FailureGroup returns the key of the group of failed runs that a run belongs to. It is empty for a run that neither
// failed nor timed out, and for a run of another engine.
func FailureGroup(r Run) string {
	if r.Status != Failed && r.Status != TimedOut || r.Trigger == TriggerImport {
		return ""
	}
	return failureGroupKey(r.Workflow, r.Error)
}
