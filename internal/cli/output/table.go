package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// Cell is one cell of a table with the head of its column. Wide columns are printed in the format Wide only. An ID is
// one that commands accept by its end. Spare columns are left out where the terminal is too narrow.
type Cell struct {
	Head, Value     string
	Wide, ID, Spare bool
}

// Row is a row of a table. All rows of a table have the same heads.
type Row []Cell

// Cells makes a row of heads and values that take turns; the columns of heads that begin with "+" are wide, those with
// "#" have IDs that commands accept by their ends, and those with "-" are spare.
func Cells(pairs ...string) Row {
	row := make(Row, (len(pairs)+1)/2) // a head without a value panics below
	for i := range row {
		head, wide := strings.CutPrefix(pairs[2*i], "+")
		head, id := strings.CutPrefix(head, "#")
		head, spare := strings.CutPrefix(head, "-")
		row[i] = Cell{Head: head, Value: pairs[2*i+1], Wide: wide, ID: id, Spare: spare}
	}
	return row
}

// Style is how text is shown; the zero value is plain text.
type Style struct {
	Color bool
	// NoHeaders leaves out the heads of the columns of tables.
	NoHeaders bool
	// Width is the number of columns of the terminal; 0 without a terminal, where tables may have any width.
	Width int
}

// ANSI's colours.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
	faint  = "2"
)

func (s Style) paint(code, text string) string {
	if !s.Color || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Faint shows text that matters less.
func (s Style) Faint(text string) string { return s.paint(faint, text) }

// Status colours the word of a status by what it means; other words stay plain.
func (s Style) Status(word string) string { return s.paint(statusColor(word), word) }

// Diff colours one line of a unified diff.
func (s Style) Diff(line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return s.paint(green, line)
	case strings.HasPrefix(line, "-"):
		return s.paint(red, line)
	case strings.HasPrefix(line, "@@"):
		return s.paint(blue, line)
	default:
		return line
	}
}

func statusColor(word string) string {
	switch word {
	case "completed", "published", "ok", "connected", "alive", "held", "done":
		return green
	case "failed", "timed_out", "error", "down", "stale", "dead", "silent", "rejected":
		return red
	case "canceled", "terminated", "waiting", "paused", "warning", "connecting", "degraded", "late", "missing", "foreign",
		"unmatched":
		return yellow
	case "running", "routing":
		return blue
	case "queued", "skipped", "draft", "pending", "parked", "stopped":
		return faint
	default:
		return ""
	}
}

// gap is the number of spaces between columns.
const gap = 2

// Rows prints a table. One that is wider than the terminal is printed without its empty columns; then, unless the format
// is Wide, IDs are shortened to their ends, long texts are cut, and spare columns are left out. If that is still too
// wide, each value gets a line.
func Rows(w io.Writer, format Format, style Style, rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	l := layout{rows: rows, style: style, widths: make([]int, len(rows[0]))}
	for i, column := range rows[0] {
		if !column.Wide || format == Wide {
			l.kept = append(l.kept, i)
		}
	}
	for _, i := range l.kept {
		for _, row := range rows {
			row[i].Value = terminal.Line(row[i].Value)
		}
	}
	l.measure()
	if l.excess() > 0 {
		l.omitEmpty()
	}
	if l.excess() > 0 && !style.NoHeaders {
		short := l.shortened()
		if format == Wide || short.excess() > 0 {
			return records(w, style, l.kept, rows)
		}
		l = short
	}
	return table(w, style, l.kept, l.widths, l.rows)
}

// layout fits a table into the terminal.
type layout struct {
	rows  []Row
	style Style
	// kept are the columns that are printed, in order, and widths the characters of each column.
	kept, widths []int
}

func (l *layout) measure() {
	for _, i := range l.kept {
		l.widths[i] = 0
		if !l.style.NoHeaders {
			l.widths[i] = utf8.RuneCountInString(l.rows[0][i].Head)
		}
		for _, row := range l.rows {
			l.widths[i] = max(l.widths[i], utf8.RuneCountInString(row[i].Value))
		}
	}
}

// excess returns by how many characters the table is wider than the terminal; not more than 0 if it fits.
func (l *layout) excess() int {
	if l.style.Width == 0 {
		return 0
	}
	total := -gap
	for _, i := range l.kept {
		total += l.widths[i] + gap
	}
	return total - l.style.Width
}

func (l *layout) omitEmpty() {
	l.kept = slices.DeleteFunc(l.kept, func(i int) bool {
		return !slices.ContainsFunc(l.rows, func(row Row) bool { return row[i].Value != "" })
	})
}

// shortened returns the layout with IDs shortened, texts cut and spare columns left out, as far as that makes it fit.
func (l *layout) shortened() layout {
	short := layout{
		rows: make([]Row, len(l.rows)), style: l.style, kept: slices.Clone(l.kept), widths: slices.Clone(l.widths)}
	for i, row := range l.rows {
		short.rows[i] = slices.Clone(row)
	}
	short.shortenIDs()
	short.cut()
	return short
}

// shortID is the number of characters at the end of a UUID that are enough to select it.
const (
	shortID  = 8
	lengthID = 36
)

// shortenIDs replaces the IDs of a column by their ends, if no two of them have the same one.
func (l *layout) shortenIDs() {
	for _, i := range l.kept {
		if !l.rows[0][i].ID {
			continue
		}
		whole := map[string]string{}
		distinct := true
		for _, row := range l.rows {
			id := row[i].Value
			short := endOf(id)
			distinct = distinct && (whole[short] == "" || whole[short] == id)
			whole[short] = id
		}
		if distinct {
			for _, row := range l.rows {
				row[i].Value = endOf(row[i].Value)
			}
		}
	}
	l.measure()
}

// endOf returns the end of an ID that has the form of a UUID.
func endOf(id string) string {
	if len(id) != lengthID {
		return id
	}
	return id[lengthID-shortID:]
}

// Texts are cut to not less than leastText characters, words, such as names and times, to not less than leastWord, and
// IDs not at all.
const (
	leastText = 12
	leastWord = 20
)

// cut shortens the columns that can be cut most until the table fits, as far as their least widths allow. Where that is not enough, it
// first leaves out spare columns, the last one first.
func (l *layout) cut() {
	least := layout{rows: l.rows, style: l.style, kept: l.kept, widths: make([]int, len(l.widths))}
	for _, i := range l.kept {
		least.widths[i] = l.least(i)
	}
	for i := len(l.rows[0]) - 1; i >= 0 && least.excess() > 0; i-- {
		if l.rows[0][i].Spare {
			least.kept = slices.DeleteFunc(slices.Clone(least.kept), func(kept int) bool { return kept == i })
		}
	}
	if least.excess() > 0 {
		return
	}
	l.kept = least.kept
	for l.excess() > 0 {
		widest := slices.MaxFunc(l.kept, func(a, b int) int {
			return (l.widths[a] - least.widths[a]) - (l.widths[b] - least.widths[b])
		})
		l.widths[widest]--
	}
	for _, row := range l.rows {
		for _, i := range l.kept {
			if value := []rune(row[i].Value); len(value) > l.widths[i] {
				row[i].Value = string(value[:l.widths[i]-1]) + "…"
			}
		}
	}
}

// least returns the width to which a column may be cut.
func (l *layout) least(column int) int {
	head := l.rows[0][column]
	least := leastWord
	switch {
	case head.ID || strings.HasSuffix(head.Head, "ID"): // to be copied
		return l.widths[column]
	case slices.ContainsFunc(l.rows, func(row Row) bool { return strings.Contains(row[column].Value, " ") }):
		least = leastText
	}
	return min(l.widths[column], max(least, utf8.RuneCountInString(head.Head)))
}

// records prints the cells of each row one per line, and an empty line between rows.
func records(w io.Writer, style Style, kept []int, rows []Row) error {
	for n, row := range rows {
		if n > 0 {
			if err := terminal.Draw(w, "\n"); err != nil {
				return err
			}
		}
		fields := make([]Field, len(kept))
		for at, i := range kept {
			fields[at] = Field{Name: row[i].Head, Value: row[i].Value}
		}
		if err := Card(w, style, fields); err != nil {
			return err
		}
	}
	return nil
}

// table prints the columns that are kept with their widths.
func table(w io.Writer, style Style, kept, widths []int, rows []Row) error {
	var text strings.Builder
	line := func(cell func(i int) (plain, shown string)) {
		space := "" // written before the next cell, so that no line ends in spaces
		for _, i := range kept {
			plain, shown := cell(i)
			if plain != "" {
				text.WriteString(space + shown)
				space = ""
			}
			space += strings.Repeat(" ", widths[i]-utf8.RuneCountInString(plain)+gap)
		}
		text.WriteByte('\n')
	}
	if !style.NoHeaders {
		line(func(i int) (string, string) { return rows[0][i].Head, style.Faint(rows[0][i].Head) })
	}
	for _, row := range rows {
		line(func(i int) (string, string) { return row[i].Value, style.Status(row[i].Value) })
	}
	return terminal.Draw(w, text.String())
}

// Field is one line of a Card. Fields without a value are left out.
type Field struct {
	Name, Value string

	unwrapped bool // its value is copied as a whole
}

// Card prints the fields of one thing, one per line; a value of several lines stands below its name. On a terminal,
// words that do not fit on a line are continued below the value.
func Card(w io.Writer, style Style, fields []Field) error {
	width := 0
	for _, field := range fields {
		if field.Value != "" {
			width = max(width, len(field.Name))
		}
	}
	var text strings.Builder
	for _, field := range fields {
		switch {
		case field.Value == "":
		case strings.Contains(field.Value, "\n"):
			fmt.Fprintf(&text, "%s\n", style.Faint(field.Name))
			for line := range strings.SplitSeq(strings.TrimRight(field.Value, "\n"), "\n") {
				fmt.Fprintf(&text, "  %s\n", terminal.Line(line))
			}
		default:
			name := field.Name + strings.Repeat(" ", width-len(field.Name))
			fmt.Fprintf(&text, "%s  %s\n", style.Faint(name), style.Status(wrapped(field, style.Width-width-gap, width+gap)))
		}
	}
	return terminal.Draw(w, text.String())
}

// wrapped returns the value of a field in lines of so many columns, with all but the first indented. No word is
// divided.
func wrapped(field Field, columns, indent int) string {
	value := terminal.Line(field.Value)
	if columns <= 0 || field.unwrapped || utf8.RuneCountInString(value) <= columns {
		return value
	}
	var text strings.Builder
	used := 0
	for i, word := range strings.Fields(value) {
		length := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+length > columns:
			text.WriteString("\n" + strings.Repeat(" ", indent))
			used = 0
		default:
			text.WriteByte(' ')
			used++
		}
		text.WriteString(word)
		used += length
	}
	return text.String()
}

// shownLines and shownBytes bound what a card shows of JSON.
const (
	shownLines = 100
	shownBytes = 8 << 10
)

// JSONField is a field that shows JSON: short on its line, long indented below its name, and of a very long one the
// beginning. Without any it has no value.
func JSONField(name, text string) Field {
	if len(text) <= 80 {
		return Field{Name: name, Value: text, unwrapped: true}
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, []byte(text), "", "  "); err != nil {
		return Field{Name: name, Value: text, unwrapped: true}
	}
	return Field{Name: name, Value: beginning(pretty.String(), len(text))}
}

// beginning returns what a card shows of a text that has size bytes as JSON.
func beginning(text string, size int) string {
	lines := strings.SplitAfterN(text, "\n", shownLines+1)
	shown := strings.Join(lines[:min(len(lines), shownLines)], "")
	if len(shown) > shownBytes {
		shown = strings.ToValidUTF8(shown[:shownBytes], "")
	}
	if len(shown) == len(text) {
		return text
	}
	return fmt.Sprintf("%s…\n%d bytes in all; -o json has them", strings.TrimSuffix(shown, "\n"), size)
}

// Bytes returns a size in decimal units, with three digits.
func Bytes(n int64) string {
	size, unit := float64(n), "B"
	for _, larger := range []string{"kB", "MB", "GB", "TB"} {
		if size < 1000 {
			break
		}
		size, unit = size/1000, larger
	}
	return fmt.Sprintf("%.3g %s", size, unit)
}

// Age writes how long ago something was, with one unit: "12s", "5m", "3h", "4d".
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// Took writes a duration to three digits or so: "3ms", "1.25s", "4m10s".
func Took(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}

// Between writes the time from start to end; nothing if one of them is not known.
func Between(start, end *timestamppb.Timestamp) string {
	if start == nil || end == nil {
		return ""
	}
	return Took(end.AsTime().Sub(start.AsTime()))
}

// Span writes how long something has lasted, in its two largest units: "3m12s", "1h", "1d3h".
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(0, d)
	two := func(n int, unit string, rest int, smaller string) string {
		if rest == 0 {
			return fmt.Sprintf("%d%s", n, unit)
		}
		return fmt.Sprintf("%d%s%d%s", n, unit, rest, smaller)
	}
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return two(int(d.Minutes()), "m", int(d.Seconds())%60, "s")
	case d < day:
		return two(int(d.Hours()), "h", int(d.Minutes())%60, "m")
	default:
		return two(int(d/day), "d", int(d.Hours())%24, "h")
	}
}

// Moment writes a time, or nothing where there is none.
func Moment(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Format(time.RFC3339)
}

// Count writes a number of things: "1 run", "2 runs", "3 deliveries", "4 batches".
func Count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %s", n, Plural(noun))
}

// Plural is the plural of a noun.
func Plural(noun string) string {
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return stem + "ies"
	}
	if strings.HasSuffix(noun, "ch") {
		return noun + "es"
	}
	return noun + "s"
}
