package redact

import (
	"cmp"
	"slices"
	"strings"
)

// Finder finds texts in other texts, in all their encodings (see docs/sensitive.md). The zero value is ready to use and finds
// nothing. It is not safe for concurrent use while texts are added.
//
// A search costs a few instructions per byte, whatever the number of texts: most positions are ruled out by a filter on the next
// eight bytes. At the others a binary search in the sorted encodings finds the longest that begins there.
type Finder struct {
	segments []segment
	filter   []uint64 // a bit per hash of eight bytes
	shift    uint     // of a hash, to its bit
	heads    int      // how many bits may be set
	added    int
}

// segment is a sorted part of the encodings. Segments merge as they grow, so that adding one text after the other costs no more than
// adding them at once, but for a logarithm.
type segment []form

// form is an encoding of a text.
type form struct {
	encoded string
	text    int // which one, in the order in which they were added
	inner   int // the index of the longest other form that this one begins with; -1 for none
}

const (
	// headSize is how many bytes the filter looks at; no form is shorter.
	headSize = shortest
	// firstBits is the size of the filter at first, as a power of two; it grows with the number of forms.
	firstBits = 12
	// sparse is how many bits there are for each form.
	sparse = 16
)

// Any reports whether there is anything to find.
func (f *Finder) Any() bool { return f != nil && len(f.segments) > 0 }

// Add adds texts. Texts that are too short to be searched for count, and are not found.
func (f *Finder) Add(texts ...string) {
	var fresh segment
	for _, text := range texts {
		if len(text) >= shortest {
			for _, encoded := range forms(text) {
				fresh = append(fresh, form{encoded: encoded, text: f.added})
			}
		}
		f.added++
	}
	if len(fresh) == 0 {
		return
	}
	f.segments = append(f.segments, fresh)
	for n := len(f.segments); n > 1 && len(f.segments[n-2]) <= 2*len(f.segments[n-1]); n-- {
		f.segments[n-2] = append(f.segments[n-2], f.segments[n-1]...)
		f.segments = f.segments[:n-1]
	}
	f.segments[len(f.segments)-1].order()
	f.note(fresh)
}

// order sorts a segment and links its forms.
func (s segment) order() {
	slices.SortFunc(s, func(a, b form) int { return cmp.Or(strings.Compare(a.encoded, b.encoded), a.text-b.text) })
	for i := range s {
		inner := i - 1
		for inner >= 0 && !strings.HasPrefix(s[i].encoded, s[inner].encoded) {
			inner = s[inner].inner
		}
		s[i].inner = inner
	}
}

// note puts forms into the filter.
func (f *Finder) note(fresh segment) {
	f.heads += len(fresh)
	if len(f.filter)*64 < f.heads*sparse {
		bits := uint(firstBits)
		for 1<<bits < 2*f.heads*sparse {
			bits++
		}
		f.filter, f.shift = make([]uint64, 1<<bits/64), 64-bits
		for _, s := range f.segments {
			f.set(s)
		}
		return
	}
	f.set(fresh)
}

func (f *Finder) set(s segment) {
	for i := range s {
		bit := hash(s[i].encoded) >> f.shift
		f.filter[bit/64] |= 1 << (bit % 64)
	}
}

// hash is one of the first eight bytes of a text; its upper bits are the good ones.
func hash(text string) uint64 {
	const multiplier = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	b := text[:headSize]
	head := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
	return head * multiplier
}

// find calls found with each place where a form begins, the longest form there, and its segment; in order of the places.
func (f *Finder) find(text string, found func(start int, s segment, i int)) {
	for start := 0; start+headSize <= len(text); start++ {
		bit := hash(text[start:]) >> f.shift
		if f.filter[bit/64]&(1<<(bit%64)) == 0 {
			continue
		}
		for _, s := range f.segments {
			if i := s.longest(text[start:]); i >= 0 {
				found(start, s, i)
			}
		}
	}
}

// longest is the index of the longest form that a text begins with; -1 for none. All other forms that the text begins with are
// its inner ones: a form that sorts between the text and one of its beginnings has this beginning as well.
func (s segment) longest(text string) int {
	low, high := 0, len(s)
	for low < high {
		if middle := int(uint(low+high) >> 1); s[middle].encoded <= text {
			low = middle + 1
		} else {
			high = middle
		}
	}
	i := low - 1
	for i >= 0 && !strings.HasPrefix(text, s[i].encoded) {
		i = s[i].inner
	}
	return i
}

// Replace puts marks in place of what it finds, and reports whether it found anything. Findings that overlap get one mark.
func (f *Finder) Replace(text string) (string, bool) {
	if !f.Any() {
		return text, false
	}
	var out []byte
	end := 0 // of the last finding; what is before it was copied
	f.find(text, func(start int, s segment, i int) {
		if start >= end {
			out = append(append(out, text[end:start]...), Mark...)
		}
		end = max(end, start+len(s[i].encoded))
	})
	if out == nil {
		return text, false
	}
	return string(append(out, text[end:]...)), true
}

// Texts calls found with the index of each text that comes up in another one; some more than once.
func (f *Finder) Texts(text string, found func(index int)) {
	if !f.Any() {
		return
	}
	f.find(text, func(_ int, s segment, i int) {
		for ; i >= 0; i = s[i].inner {
			found(s[i].text)
		}
	})
}
