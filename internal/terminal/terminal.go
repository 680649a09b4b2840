// Package terminal keeps text of others from steering the terminal that shows it.
//
//	out := terminal.NewScreen(os.Stdout, columns)
//	out.Write(source)                                    // everything is escaped
//	terminal.Draw(out, style.Status("failed")+" "+title) // everything but colours is escaped
//
// A control character moves the cursor, changes the clipboard or answers as if it were typed. A direction mark turns
// the text beside it around. A format character, such as a zero-width space, makes two texts look alike. All of them
// are written as escapes of JSON, such as \u202e, which are the same value inside of a text in JSON.
//
// The package does not measure text, and does not decide whether a stream is a terminal.
package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns text on one line, as a terminal may show it: tabs become spaces, and line ends are escaped, too.
func Line(text string) string {
	if plain(text) {
		return text
	}
	return escape(strings.NewReplacer("\t", " ", "\n", `\n`).Replace(text))
}

// Text returns text of several lines as a terminal may show it: tabs and line ends stay.
func Text(text string) string {
	if plain(text) {
		return text
	}
	return escape(text)
}

// JSON returns JSON with the same value, of which a terminal obeys nothing. JSON has such characters only inside of
// texts.
func JSON(text []byte) []byte {
	if plain(string(text)) {
		return text
	}
	return []byte(escape(string(text)))
}

// plain reports whether text consists of visible ASCII characters and spaces, as most does.
func plain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// Unsafe reports whether a terminal must not show a character: one that is neither visible nor a space, a tab or a line
// end.
func Unsafe(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < utf8.RuneSelf:
		return r < ' ' || r > '~'
	case r == '\ufe0e' || r == '\ufe0f': // emoji as text or as a picture
		return false
	}
	return !unicode.IsGraphic(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// escape replaces what a terminal must not show, and bytes that are not UTF-8.
func escape(text string) string {
	var out strings.Builder
	out.Grow(len(text))
	for i, r := range text {
		switch {
		case r == '\r' && strings.HasPrefix(text[i+1:], "\n"): // a line end of Windows
			out.WriteByte('\r')
		case !Unsafe(r):
			out.WriteRune(r)
		default:
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&out, `\u%04x`, unit)
			}
		}
	}
	return out.String()
}

// drawn escapes all of a text but its colours: the worst that others can do with them is to colour their own text.
func drawn(text string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "\x1b")
		out.WriteString(Text(before))
		if !found {
			return out.String()
		}
		n := colorLength(after)
		if n == 0 {
			out.WriteString(escape("\x1b"))
		} else {
			out.WriteString("\x1b" + after[:n])
		}
		text = after[n:]
	}
}

// colorLength returns the length of what follows an escape character in a sequence of one colour or style, "[31m", and
// 0 for other text.
func colorLength(text string) int {
	code, ok := strings.CutPrefix(text, "[")
	end := strings.IndexByte(code, 'm')
	if !ok || end < 1 || end > 2 || strings.Trim(code[:end], "0123456789") != "" {
		return 0
	}
	return end + 2
}

// Escaper is a writer that escapes what is written to it. It may be used concurrently.
type Escaper struct {
	mu   sync.Mutex
	w    io.Writer
	rest []byte // the beginning of a character or of a line end whose other bytes have not been written yet
}

// NewEscaper returns a writer to w. JSON keeps its value.
func NewEscaper(w io.Writer) *Escaper { return &Escaper{w: w} }

// Write implements [io.Writer].
func (e *Escaper) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := slices.Concat(e.rest, p)
	whole := len(text) - incomplete(text)
	e.rest = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(e.w, Text(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// incomplete returns the number of bytes at the end of text that following ones may continue.
func incomplete(text []byte) int {
	if len(text) > 0 && text[len(text)-1] == '\r' {
		return 1
	}
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// Screen is a stream to a terminal. What is written to it is escaped; only Draw and Redraw write sequences that the
// terminal obeys.
type Screen struct {
	*Escaper

	columns func() int
}

// NewScreen returns a stream to a terminal of so many columns.
func NewScreen(w io.Writer, columns func() int) *Screen {
	return &Screen{Escaper: NewEscaper(w), columns: columns}
}

// Columns returns the width of the terminal.
func (s *Screen) Columns() int { return s.columns() }

func (s *Screen) obey(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := io.WriteString(s.w, text)
	return err
}

// Draw writes text for people, escaped but for its colours. A file or a pipe gets it escaped, too: a terminal may show
// it later.
func Draw(w io.Writer, text string) error { return write(w, drawn(text)) }

// Redraw replaces so many lines above the cursor by text; for 0, the line of the cursor.
func Redraw(w io.Writer, lines int, text string) error {
	sequence := "\r\x1b[K"
	if lines > 0 {
		sequence = fmt.Sprintf("\x1b[%dA\x1b[J", lines)
	}
	return write(w, sequence+drawn(text))
}

func write(w io.Writer, text string) error {
	if screen, ok := w.(*Screen); ok {
		return screen.obey(text)
	}
	_, err := io.WriteString(w, text)
	return err
}
