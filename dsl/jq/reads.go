package jq

import (
	"slices"

	"github.com/itchyny/gojq"
)

// Members returns the names of the members that an expression reads of its input directly, such as a and b of
// `.a.x == 1 and .b`. It returns none where it cannot decide whether a name is one of the input's members: behind a
// pipe, and in the arguments of functions. The result of an expression that does not compile is empty.
func Members(source string) []string {
	query, err := gojq.Parse(source)
	if err != nil || len(source) > MaxSource {
		return nil
	}
	var names []string
	membersOfQuery(query, &names)
	slices.Sort(names)
	return slices.Compact(names)
}

func membersOfQuery(q *gojq.Query, names *[]string) {
	switch {
	case q == nil:
	case q.Term != nil:
		membersOfTerm(q.Term, names)
	case q.Op == gojq.OpPipe:
		membersOfQuery(q.Left, names)
		if len(q.Patterns) > 0 { // the input of `… as $x | body` is that of body, too
			membersOfQuery(q.Right, names)
		}
	default:
		membersOfQuery(q.Left, names)
		membersOfQuery(q.Right, names)
	}
}

func membersOfTerm(t *gojq.Term, names *[]string) {
	switch t.Type {
	case gojq.TermTypeIndex:
		if name, ok := constantName(t.Index); ok {
			*names = append(*names, name)
		}
	case gojq.TermTypeIdentity:
		if len(t.SuffixList) > 0 && t.SuffixList[0].Index != nil {
			if name, ok := constantName(t.SuffixList[0].Index); ok {
				*names = append(*names, name)
			}
		}
	case gojq.TermTypeQuery:
		membersOfQuery(t.Query, names)
	case gojq.TermTypeArray:
		membersOfQuery(t.Array.Query, names)
	case gojq.TermTypeUnary:
		membersOfTerm(t.Unary.Term, names)
	case gojq.TermTypeIf:
		membersOfQuery(t.If.Cond, names)
		membersOfQuery(t.If.Then, names)
		membersOfQuery(t.If.Else, names)
	}
}
