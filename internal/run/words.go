package run

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/search/term"
)

// StartWords returns the words by which a run is found from its start: those of the values of its labels and of its
// request ID. A request ID that is a UUID has none: it is found by its beginning.
func StartWords(r Run) []string {
	texts := make([]string, 0, len(r.Labels)+1)
	for _, key := range slices.Sorted(maps.Keys(r.Labels)) {
		texts = append(texts, r.Labels[key])
	}
	if uuid.Validate(r.RequestID) != nil {
		texts = append(texts, r.RequestID)
	}
	return term.Of(texts...)
}

// ErrorWords returns the words by which a run is found that ended with an error: those of its title, its type, its
// detail and the name of the task, and its status. A run without an error has none.
func ErrorWords(e *Error) []string {
	if e == nil {
		return nil
	}
	texts := []string{e.Title, e.Type[strings.LastIndex(e.Type, "/")+1:], FailedTask(e), e.Detail}
	if e.Status > 0 {
		texts = append([]string{strconv.Itoa(e.Status)}, texts...)
	}
	return term.Of(texts...)
}

// FailedTask returns the name of the task that an error is from: the last name in its pointer. It is empty where a
// workflow defines another instance for the error.
func FailedTask(e *Error) string {
	if e == nil || !strings.HasPrefix(e.Instance, "/do/") {
		return ""
	}
	parts := strings.Split(e.Instance, "/")
	for i := len(parts) - 1; i > 1; i-- {
		if _, err := strconv.Atoi(parts[i-1]); err == nil {
			return redact.UnescapePart(parts[i])
		}
	}
	return ""
}

// hasWords reports whether the run has each word that the filter has: in its words, and of Words also in the name of its
// workflow or the key of a label. One of these must be in its words, by which it is found.
func (f Filter) hasWords(r Run) bool {
	failed := ErrorWords(r.Error)
	if !beginAll(term.Words(f.ErrorText), failed) ||
		f.FailedTask != "" && term.Normal(f.FailedTask) != term.Normal(FailedTask(r.Error)) {
		return false
	}
	wanted := term.Words(f.Words)
	if len(wanted) == 0 {
		return true
	}
	found, all := false, append(StartWords(r), failed...)
	for _, word := range wanted {
		in := beginAll([]string{word}, all)
		found = found || in
		if !in && !strings.Contains(strings.ToLower(r.Workflow), word) && !keyContains(r.Labels, word) {
			return false
		}
	}
	return found
}

func beginAll(wanted, words []string) bool {
	for _, word := range wanted {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, word) }) {
			return false
		}
	}
	return true
}

func keyContains(labels map[string]string, word string) bool {
	for key := range labels {
		if strings.Contains(strings.ToLower(key), word) {
			return true
		}
	}
	return false
}

const (
	// maxSearch is the maximum length of a text that runs are searched for, in bytes.
	maxSearch = 200
	// maxSearchWords is the maximum number of its words.
	maxSearchWords = 8
)

// CheckWords returns an error for a text that runs cannot be searched for. An empty text is no search.
func CheckWords(field, text string) error {
	words := term.Words(text)
	switch {
	case text == "":
		return nil
	case len(text) > maxSearch:
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, "the text to search for has %d bytes: at most %d are "+
			"allowed", len(text), maxSearch).WithField(field, "is too long")
	case len(words) == 0:
		return apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"the text to search for, %q, has no letters and no digits: write the beginnings of words", text).
			WithField(field, "has no words")
	case len(words) > maxSearchWords:
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, "the text to search for has %d words: at most %d are "+
			"allowed", len(words), maxSearchWords).WithField(field, "has too many words")
	}
	return nil
}
