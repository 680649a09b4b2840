// Package suggest finds the name that a mistyped one was meant to be.
package suggest

import (
	"fmt"
	"slices"
	"strings"
)

// Name suggests the candidate closest to a mistyped name, or lists the candidates if they are few.
func Name(name string, candidates []string) string {
	if s := Closest(name, candidates); s != "" {
		return s
	}
	const few = 12
	if n := len(candidates); n == 0 || n > few {
		return ""
	}
	return "known here: " + strings.Join(slices.Sorted(slices.Values(candidates)), ", ")
}

// Closest suggests the candidate that resembles a mistyped name, "" if none does.
func Closest(name string, candidates []string) string {
	best := Nearest(name, candidates)
	if best == "" {
		return ""
	}
	return DidYouMean(best)
}

// DidYouMean suggests one candidate.
func DidYouMean(candidate string) string { return fmt.Sprintf("did you mean %q?", candidate) }

// maxCandidates bounds the time of one suggestion.
const maxCandidates = 1000

// Nearest returns the candidate that resembles a mistyped name, "" if none does.
func Nearest(name string, candidates []string) string {
	if len(candidates) > maxCandidates {
		return ""
	}
	best, distance := "", len(name)/3+2
	for _, c := range candidates {
		d := editDistance(strings.ToLower(name), strings.ToLower(c))
		if d < distance {
			best, distance = c, d
		}
	}
	return best
}

// editDistance returns the number of letters to insert, delete, replace or swap to get from a to b. Long names are
// truncated, as their difference is not a typing error.
func editDistance(a, b string) int {
	const longest = 64
	ra, rb := []rune(a), []rune(b)
	ra, rb = ra[:min(len(ra), longest)], rb[:min(len(rb), longest)]
	before, prev, cur := make([]int, len(rb)+1), make([]int, len(rb)+1), make([]int, len(rb)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range ra {
		cur[0] = i + 1
		for j := range rb {
			cost := 1
			if ra[i] == rb[j] {
				cost = 0
			}
			cur[j+1] = min(cur[j]+1, prev[j+1]+1, prev[j]+cost)
			if i > 0 && j > 0 && ra[i] == rb[j-1] && ra[i-1] == rb[j] {
				cur[j+1] = min(cur[j+1], before[j-1]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(rb)]
}
