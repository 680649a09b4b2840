package interp

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/dsl"
)

// MaxValueBytes is the largest value, as JSON, that leaves a run or comes into it: an event, an input or output of a run, a request, an
// answer.
const MaxValueBytes = 16 << 20

const (
	// maxDetail bounds the detail of an error, maxLabel its other texts, in bytes. An error is in the records of every task that it
	// passes, in the rows of runs, in events and in Temporal's histories.
	maxDetail, maxLabel = 8 << 10, 1 << 10
)

// TooLarge is the error of a task that would send a value, or has got one, that is larger than the limit. what names the value with its
// article.
func TooLarge(what string, size, limit int, instance string) dsl.Error {
	problem := newError(dsl.ErrorTypeValidation, 413, instance,
		fmt.Sprintf("%s has %d bytes as JSON, more than the limit of %d: pass less on, or a reference to it", what, size, limit))
	problem.Title = "Value too large"
	return problem
}

// bounded reports whether the run is one of those that BoundedSince bounds.
func (m *Machine) bounded() bool { return m.start.Interpreter >= BoundedSince }

// cut bounds the texts of an error. What is cut ends with a mark that says so.
func (m *Machine) cut(problem dsl.Error) dsl.Error {
	if !m.bounded() {
		return problem
	}
	problem.Detail = cutText(problem.Detail, maxDetail)
	for _, label := range []*string{&problem.Type, &problem.Title, &problem.Instance} {
		*label = cutText(*label, maxLabel)
	}
	return problem
}

// cutResult is [Machine.cut] for the error of a result, if it has one.
func (m *Machine) cutResult(r Result) Result {
	if r.Error != nil {
		problem := m.cut(*r.Error)
		r.Error = &problem
	}
	return r
}

func cutText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	mark := fmt.Sprintf(" … [cut: %d bytes in all]", len(text))
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.Clone(text[:end]) + mark // a part would keep the whole in memory
}
