// Package output has what one program prints: its standard output and its standard error, each up to a limit. It can be
// read while the program runs.
//
//	ctx, cancel := context.WithCancelCause(ctx)
//	printed := output.New(limit, cancel)
//	// execute the program with ctx: it writes to printed.Stdout() and printed.Stderr()
//	stdout, stderr := printed.Text()
//
// A program that prints more than the limit ends with [ErrFull], the cause of its context.
package output

import (
	"errors"
	"io"
	"strings"
	"sync"
)

// ErrFull ends a program that printed more than its limit.
var ErrFull = errors.New("the program was ended, because it printed more than its limit")

// Streams are what one program has printed. They are safe for concurrent use.
type Streams struct {
	limit int
	full  func(error)

	mu             sync.Mutex
	stdout, stderr []byte
}

// New returns empty streams. limit bounds each of the two, in bytes. full is called with [ErrFull] for each write that
// exceeds it, as the cancellation of the program's context.
func New(limit int, full func(error)) *Streams { return &Streams{limit: limit, full: full} }

// Stdout returns the writer of the standard output.
func (s *Streams) Stdout() io.Writer { return writer{s, &s.stdout} }

// Stderr returns the writer of the standard error.
func (s *Streams) Stderr() io.Writer { return writer{s, &s.stderr} }

// Text returns what was printed so far, as valid UTF-8: other bytes are replaced, of which only the last of a stream can
// be a part of a character.
func (s *Streams) Text() (stdout, stderr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return text(s.stdout), text(s.stderr)
}

func text(stream []byte) string { return strings.ToValidUTF8(string(stream), "\uFFFD") }

// writer appends to one stream.
type writer struct {
	streams *Streams
	stream  *[]byte
}

// Write implements [io.Writer]. It keeps what there is room for, and always reports that it has written everything: the
// program ends by its context.
func (w writer) Write(p []byte) (int, error) {
	w.streams.mu.Lock()
	kept := p[:min(len(p), w.streams.limit-len(*w.stream))]
	*w.stream = append(*w.stream, kept...)
	w.streams.mu.Unlock()
	if len(kept) < len(p) {
		w.streams.full(ErrFull)
	}
	return len(p), nil
}
