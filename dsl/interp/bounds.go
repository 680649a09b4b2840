package interp

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/dsl"
)

// MaxValueBytes is the maximum size, as JSON, of a value that enters or leaves a run: an event, an input or output of a
// run, a request, a response.
const MaxValueBytes = 16 << 20

const (
	// maxDetail limits the detail of an error, maxLabel its other texts, in bytes. An error is stored in the records of
	// every task that it passes, in the rows of runs, in events and in Temporal's histories.
	maxDetail, maxLabel = 8 << 10, 1 << 10
)

// TooLarge returns the error of a task with a request or response over the limit. what describes the value
// with its article.
func TooLarge(what string, size, limit int, instance string) dsl.Error {
	runError := newError(dsl.ErrorTypeValidation, 413, instance,
		fmt.Sprintf("%s has %d bytes as JSON, more than the limit of %d: pass less on, or a reference to it", what, size,
			limit))
	runError.Title = "Value too large"
	return runError
}

// truncate limits the texts of an error. A truncated text ends with a mark that shows it.
func truncate(runError dsl.Error) dsl.Error {
	runError.Detail = truncateText(runError.Detail, maxDetail)
	for _, label := range []*string{&runError.Type, &runError.Title, &runError.Instance} {
		*label = truncateText(*label, maxLabel)
	}
	return runError
}

// truncateResult is truncate for the error of a result, if it has one.
func truncateResult(r Result) Result {
	if r.Error != nil {
		runError := truncate(*r.Error)
		r.Error = &runError
	}
	return r
}

func truncateText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	mark := fmt.Sprintf(" … [cut: %d bytes in all]", len(text))
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.Clone(text[:end]) + mark // a substring would keep the whole text in memory
}
