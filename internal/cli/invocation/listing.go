package invocation

import (
	"cmp"

	"google.golang.org/protobuf/proto"

	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// Listing is how a list is printed.
type Listing[M proto.Message] struct {
	// Thing is what is listed, in the singular.
	Thing string
	// None is said where there are none; empty: "no THINGS".
	None string
	Row  func(M) output.Row
}

// List prints up to limit items that fetch returns page by page; see Pages.
func (l Listing[M]) List(s *Invocation, limit int, fetch Fetch[M]) error {
	items, more, err := Pages(limit, fetch)
	if err != nil {
		return err
	}
	return l.Print(s, items, more)
}

// Print prints a list: for programs as it is, for people as a table. That there is none, or more, is said beside it.
func (l Listing[M]) Print(s *Invocation, items []M, more bool) error {
	if s.Format().Structured() {
		return output.List(s.Out, s.Format(), items)
	}
	if len(items) == 0 {
		s.Note("%s", cmp.Or(l.None, "no "+output.Plural(l.Thing)))
		return nil
	}
	if more {
		s.Note("%s shown; there are more: --limit 0 lists all", output.Count(int64(len(items)), l.Thing))
	}
	rows := make([]output.Row, len(items))
	for i, item := range items {
		rows[i] = l.Row(item)
	}
	return output.Rows(s.Out, s.Format(), s.Style(), rows)
}
