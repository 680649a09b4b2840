// Package term divides texts into the words by which they are found.
//
//	words := term.Words("Order 4711")                        // order, 4711
//	found := term.Match(words, "order-4711", "not found")    // true
//	parts := term.Highlight("order-4711 is late", words)     // order, -, 4711, " is late"
//
// A word is a sequence of letters, marks and digits, in lower case; all other characters separate words. A word of
// letters that end in digits has a second one, its digits: "INV4711" is found by 4711. Texts are found by the
// beginnings of their words, so that the words can be looked up in an index.
//
// The package reads nothing. What may be searched for is redacted before it is divided: marks of redacted values are no
// words.
package term

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/internal/redact"
)

const (
	// MaxWord is the maximum length of a word in bytes; the rest of a longer one is ignored, in texts and in searches.
	MaxWord = 64
	// MaxWords is the maximum number of different words of the texts of one thing.
	MaxWords = 64
	// digitsAlone is the shortest number at the end of a word that is a word, too.
	digitsAlone = 3
)

// span is a word with its place in the text.
type span struct {
	word       string
	start, end int
}

// spans returns the words of a text in their order.
func spans(text string) (list []span) {
	for start := 0; start < len(text); {
		if at := strings.Index(text[start:], redact.Mark); at == 0 {
			start += len(redact.Mark)
			continue
		}
		c, size := utf8.DecodeRuneInString(text[start:])
		if !part(c) {
			start += size
			continue
		}
		end := start
		for end < len(text) {
			c, size := utf8.DecodeRuneInString(text[end:])
			if !part(c) {
				break
			}
			end += size
		}
		list = append(list, span{word: Normal(text[start:end]), start: start, end: end})
		if digits := start + digitsAt(text[start:end]); digits > start {
			list = append(list, span{word: Normal(text[digits:end]), start: digits, end: end})
		}
		start = end
	}
	return list
}

func part(c rune) bool {
	return c != utf8.RuneError && (unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c))
}

// Normal returns a text in the form of a word: in lower case, not longer than MaxWord.
func Normal(word string) string {
	word = strings.ToLower(word)
	if len(word) > MaxWord {
		word = strings.ToValidUTF8(word[:MaxWord], "")
	}
	return word
}

// digitsAt returns where the digits at the end of a word of letters and digits begin; 0 if it is no such word, or the
// digits are few.
func digitsAt(word string) int {
	letters := strings.TrimRight(word, "0123456789")
	if letters == "" || len(word)-len(letters) < digitsAlone || strings.ContainsAny(letters, "0123456789") {
		return 0
	}
	return len(letters)
}

// Of returns the different words of texts, the first MaxWords of them.
func Of(texts ...string) (words []string) {
	for _, text := range texts {
		for _, s := range spans(text) {
			if !slices.Contains(words, s.word) {
				if words = append(words, s.word); len(words) == MaxWords {
					return words
				}
			}
		}
	}
	return words
}

// Words returns the words that a search consists of. It does not have the digits at the end of a word apart: the word
// with them is meant.
func Words(search string) (words []string) {
	end := -1
	for _, s := range spans(search) {
		if s.end != end && !slices.Contains(words, s.word) {
			words = append(words, s.word)
		}
		end = s.end
	}
	return words
}

// Match reports whether each word of a search begins a word of one of the texts.
func Match(search []string, texts ...string) bool {
	for _, word := range search {
		if !slices.ContainsFunc(texts, func(text string) bool { return begins(text, word) }) {
			return false
		}
	}
	return true
}

func begins(text, word string) bool {
	return slices.ContainsFunc(spans(text), func(s span) bool { return strings.HasPrefix(s.word, word) })
}

// Part is a part of a text: Match reports that it is what was searched for.
type Part struct {
	Text  string
	Match bool
}

// Highlight divides a text into what begins like a word of the search and the rest.
func Highlight(text string, search []string) (parts []Part) {
	done := 0
	for _, s := range spans(text) {
		if s.start < done {
			continue
		}
		end := s.start
		for _, word := range search {
			if strings.HasPrefix(s.word, word) {
				end = max(end, boundary(text, s, word))
			}
		}
		if end == s.start {
			continue
		}
		if s.start > done {
			parts = append(parts, Part{Text: text[done:s.start]})
		}
		parts = append(parts, Part{Text: text[s.start:end], Match: true})
		done = end
	}
	if done < len(text) {
		parts = append(parts, Part{Text: text[done:]})
	}
	return parts
}

// boundary returns where the beginning of a word ends in the text: lower case may be of another length.
func boundary(text string, s span, word string) int {
	for at, c := range text[s.start:s.end] {
		if end := s.start + at + utf8.RuneLen(c); len(strings.ToLower(text[s.start:end])) >= len(word) {
			return end
		}
	}
	return s.end
}
