package redact

import (
	"cmp"
	"slices"
	"strings"
)

// Finder finds texts in other texts, in all their encodings (see docs/sensitive.md). The zero value is ready to use and
// finds nothing. It is not safe for concurrent use while texts are added.
//
// A search costs a few instructions per byte, independent of the number of texts: a filter on the next eight bytes
// excludes most positions. At the others a binary search in the sorted encodings finds the longest one that begins
// there.
type Finder struct {
	segments []segment
	filter   []uint64 // a bit per hash of eight bytes
	shift    uint     // of a hash, to its bit
	heads    int      // the largest number of bits that may be set
	added    int
}

// segment is a sorted part of the encodings. Segments merge as they grow, so that adding texts one by one costs only a
// logarithmic factor more than adding them at once.
type segment []form

// form is an encoding of a text.
type form struct {
	encoded string
	text    int // the index of the text, in the order of addition
	inner   int // the index of the longest other form that is a prefix of this one; -1 for none
}

const (
	// headSize is how many bytes the filter checks; no form is shorter.
	headSize = shortest
	// firstBits is the initial size of the filter, as a power of two; it grows with the number of forms.
	firstBits = 12
	// bitsPerForm is how many bits of the filter there are for each form.
	bitsPerForm = 16
)

// Any reports whether the finder has any text.
func (f *Finder) Any() bool { return f != nil && len(f.segments) > 0 }

// Add adds texts. A text that is too short to be searched for gets an index, but is not found.
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
	f.addToFilter(fresh)
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

// addToFilter adds forms to the filter.
func (f *Finder) addToFilter(fresh segment) {
	f.heads += len(fresh)
	if len(f.filter)*64 < f.heads*bitsPerForm {
		bits := uint(firstBits)
		for 1<<bits < 2*f.heads*bitsPerForm {
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

// hash returns a hash of the first eight bytes of a text. Its upper bits are the well mixed ones.
func hash(text string) uint64 {
	const multiplier = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	b := text[:headSize]
	head := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
	return head * multiplier
}

// find calls found with each position at which a form begins, the segment and the index of the longest form there, in
// order of positions.
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

// longest returns the index of the longest form that is a prefix of a text; -1 for none. All other forms that are
// prefixes of the text are its inner ones: a form that sorts between the text and one of its prefixes has this prefix
// as well.
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

// Replace replaces what it finds by marks, and reports whether it found anything. Overlapping findings get one mark.
func (f *Finder) Replace(text string) (string, bool) {
	if !f.Any() {
		return text, false
	}
	var out []byte
	end := 0 // of the last finding; everything before it was copied
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

// Texts calls found with the index of each text that occurs in another one, for some texts more than once.
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
