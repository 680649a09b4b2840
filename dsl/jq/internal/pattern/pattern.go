// Package pattern finds matches of regular expressions at a predictable cost: patterns are weighed before they are
// compiled, and a search for all matches counts every character that it reads. The caller defines the value of a unit
// of cost.
package pattern

import (
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// Limits of regular expressions.
const (
	MaxBytes  = 1 << 10 // of a pattern
	MaxWeight = 2000    // instructions of a compiled pattern, as Weigh estimates them
	MaxParts  = 1 << 16 // matches and groups in the result of one search
)

// Budget is the budget that a search charges.
type Budget interface {
	// Charge uses units, and returns an error if there were fewer.
	Charge(units int64) error
	// Remaining returns the number of units left.
	Remaining() int64
}

// TooMany is the error of a search that found more than MaxParts.
type TooMany struct{}

// Error implements error.
func (TooMany) Error() string {
	return fmt.Sprintf("a search with over %d matches and groups", MaxParts)
}

// Pattern is a compiled regular expression.
type Pattern struct {
	// All is set if the flags request all matches.
	All bool

	first *regexp.Regexp
	// next finds the first match after one character. That character is the context for ^ and \b.
	next   *regexp.Regexp
	names  []string
	weight int64
}

// Compile compiles a pattern with the flags g, i and m. The caller must have checked its weight.
func Compile(source, flags string) (*Pattern, error) {
	if strings.Trim(flags, "gim") != "" || len(flags) > MaxBytes {
		return nil, fmt.Errorf("unsupported regular expression flag: %.40q", flags)
	}
	weight := Weigh(source)
	if strings.Contains(flags, "i") {
		source = "(?i)" + source
	}
	if strings.Contains(flags, "m") {
		source = "(?s)" + source
	}
	first, err := regexp.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("invalid regular expression %.200q: %w", source, err)
	}
	next, err := regexp.Compile(`\A(?s:.)(?s:.*?)((?:` + source + `))`)
	if err != nil {
		return nil, fmt.Errorf("invalid regular expression %.200q: %w", source, err)
	}
	return &Pattern{
		All: strings.Contains(flags, "g"), first: first, next: next, names: first.SubexpNames(),
		weight: (weight + 4) * (8 + int64(first.NumSubexp())) / 8,
	}, nil
}

// Check returns what is wrong with a pattern and its flags.
func Check(source, flags string) error {
	if len(source) > MaxBytes || Weigh(source) > MaxWeight {
		return fmt.Errorf("the regular expression %.40q is over the limit of %d bytes or %d parts", source, MaxBytes,
			MaxWeight)
	}
	if unknown := strings.Trim(flags, "gim"); unknown != "" {
		return fmt.Errorf("the flag %.40q of a regular expression is not supported, g, i and m are", unknown)
	}
	_, err := syntax.Parse(source, syntax.Perl)
	var broken *syntax.Error
	switch {
	case err == nil:
		return nil
	case strings.Contains(source, "(?=") || strings.Contains(source, "(?!") || strings.Contains(source, "(?<=") ||
		strings.Contains(source, "(?<!"):
		return fmt.Errorf("the regular expression %.200q looks around, which is not supported", source)
	case errors.As(err, &broken) && broken.Code == syntax.ErrInvalidEscape &&
		regexp.MustCompile(`\\[1-9k]`).MatchString(source):
		return fmt.Errorf("the regular expression %.200q refers back to a group, which is not supported", source)
	}
	return fmt.Errorf("the regular expression %.200q is not valid: %w", source, err)
}

// Weigh returns an upper bound of the number of instructions that a pattern compiles to. It depends on the text alone,
// so that it is the same with every version of the compiler.
func Weigh(re string) int64 {
	const most = 1 << 40
	type level struct{ sum, last int64 }
	stack := []level{{}}
	add := func(n int64) {
		top := &stack[len(stack)-1]
		top.sum, top.last = min(top.sum+n, most), n
	}
	for i := 0; i < len(re); i++ {
		switch c := re[i]; c {
		case '\\':
			i++
			add(2)
		case '[':
			end := i + 1
			for end < len(re) && (re[end] != ']' || end == i+1) {
				if re[end] == '\\' {
					end++
				}
				end++
			}
			add(int64(2 + (end-i)/4))
			i = end
		case '(':
			stack = append(stack, level{sum: 2})
		case ')':
			if len(stack) > 1 {
				inner := stack[len(stack)-1].sum
				stack = stack[:len(stack)-1]
				add(inner)
			}
		case '*', '+', '?', '|':
			stack[len(stack)-1].sum += 2
		case '{':
			times, end := repetition(re[i:])
			if end == 0 {
				add(1)
				continue
			}
			top := &stack[len(stack)-1]
			top.sum = min(top.sum+(top.last+2)*times, most)
			top.last = min((top.last+2)*times, most)
			i += end
		default:
			add(1)
		}
	}
	sum := int64(0)
	for _, l := range stack {
		sum = min(sum+l.sum, most)
	}
	return sum
}

// repetition reads {n}, {n,} or {n,m}: the maximum number of repetitions and the end offset; 0 if it is not a
// repetition.
func repetition(s string) (times int64, end int) {
	end = strings.IndexByte(s, '}')
	if end < 2 {
		return 0, 0
	}
	for part := range strings.SplitSeq(s[1:end], ",") {
		n := int64(0)
		for _, c := range part {
			if c < '0' || c > '9' {
				return 0, 0
			}
			n = min(n*10+int64(c-'0'), 1<<20)
		}
		times = max(times, n+1)
	}
	return times, end
}

// perStep is the number of instructions of a pattern, each tried at one character, that cost one unit.
const perStep = 4

// Test reports whether the pattern matches.
func (p *Pattern) Test(text string, b Budget) (bool, error) {
	if err := b.Charge(p.once(text)); err != nil {
		return false, err
	}
	return p.first.MatchString(text), nil
}

// First returns a list with a description of the first match, empty if there is none.
func (p *Pattern) First(text string, b Budget) ([]any, error) {
	if err := b.Charge(p.once(text)); err != nil {
		return nil, err
	}
	out := matches{text: text, names: p.names, list: []any{}}
	if at := p.first.FindStringSubmatchIndex(text); at != nil {
		out.add(at, 0)
	}
	return out.list, nil
}

// once is the cost of one search.
func (p *Pattern) once(text string) int64 { return 1 + times(int64(len(text)+1), p.weight)/perStep }

// times multiplies without overflow.
func times(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/8/a {
		return math.MaxInt64 / 8
	}
	return a * b
}

// counted counts the characters that are read from a text.
type counted struct {
	io.RuneReader
	runes int64
}

// ReadRune implements [io.RuneReader].
func (c *counted) ReadRune() (rune, int, error) {
	c.runes++
	return c.RuneReader.ReadRune()
}

// Every describes all matches. Each is found by a search from the end of the previous one, which may read far beyond
// the match that it finds: the cost is therefore that of the characters read.
func (p *Pattern) Every(text string, b Budget) ([]any, error) {
	out := matches{text: text, names: p.names, list: []any{}}
	parts := int64(len(p.names)) // per match: itself and its groups
	for from := 0; from <= len(text); {
		if err := b.Charge(4 + parts + p.weight/perStep); err != nil {
			return nil, err
		}
		at, base, err := p.search(text, from, b)
		if err != nil || at == nil {
			return out.list, err
		}
		if int64(len(out.list)+1)*parts > MaxParts {
			return nil, TooMany{}
		}
		if err := b.Charge(6 * parts); err != nil {
			return nil, err
		}
		out.add(at, base)
		if from = base + at[1]; at[0] == at[1] {
			_, size := utf8.DecodeRuneInString(text[from:])
			from += max(size, 1)
		}
	}
	return out.list, nil
}

// search finds the first match from a byte offset on. Offsets in the result count from base.
func (p *Pattern) search(text string, from int, b Budget) (at []int, base int, err error) {
	re := p.first
	if from > 0 {
		_, size := utf8.DecodeLastRuneInString(text[:from])
		re, base = p.next, from-size
	}
	// a search cannot be interrupted, so its text ends where the budget ends
	reader := &counted{RuneReader: &limitedText{strings.NewReader(text[base:]), b.Remaining()*perStep/p.weight + 1}}
	at = re.FindReaderSubmatchIndex(reader)
	if err := b.Charge(times(reader.runes, p.weight) / perStep); err != nil {
		return nil, 0, err
	}
	if at != nil && from > 0 {
		at = at[2:]
	}
	return at, base, nil
}

// limitedText ends after a number of characters.
type limitedText struct {
	io.RuneReader
	left int64
}

// ReadRune implements [io.RuneReader].
func (l *limitedText) ReadRune() (rune, int, error) {
	if l.left--; l.left < 0 {
		return 0, 0, io.EOF
	}
	return l.RuneReader.ReadRune()
}

// matches builds the objects that describe matches. Their offsets are in characters, which it counts once.
type matches struct {
	text  string
	names []string
	list  []any

	bytes, characters int
}

// add describes one match. Its offsets count from base.
func (m *matches) add(at []int, base int) {
	start := m.offset(base + at[0])
	captures := make([]any, 0, len(m.names)-1)
	for g := 1; g < len(m.names); g++ {
		var name any
		if m.names[g] != "" {
			name = m.names[g]
		}
		if at[2*g] < 0 {
			captures = append(captures, map[string]any{"name": name, "offset": -1, "length": 0, "string": nil})
			continue
		}
		part := m.text[base+at[2*g] : base+at[2*g+1]]
		captures = append(captures, map[string]any{
			"name": name, "offset": start + utf8.RuneCountInString(m.text[base+at[0]:base+at[2*g]]),
			"length": utf8.RuneCountInString(part), "string": part,
		})
	}
	whole := m.text[base+at[0] : base+at[1]]
	m.list = append(m.list, map[string]any{
		"offset": start, "length": utf8.RuneCountInString(whole), "string": whole, "captures": captures,
	})
}

// offset converts a byte offset to characters. Offsets must not decrease between calls.
func (m *matches) offset(at int) int {
	m.characters += utf8.RuneCountInString(m.text[m.bytes:at])
	m.bytes = at
	return m.characters
}
