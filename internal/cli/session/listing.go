package session

import (
	"google.golang.org/protobuf/proto"

	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// Listing is how a list is printed.
type Listing[M proto.Message] struct {
	// Things is what is listed, in the plural.
	Things string
	// None follows "no THINGS" where there are none; may be empty.
	None    string
	Columns []output.Column
	Row     func(M) []string
}

// Print prints a list: for programs as it is, for people as a table. That there is none, or more, is said beside it.
func (l Listing[M]) Print(s *Session, items []M, more bool) error {
	if s.Format().Structured() {
		return output.List(s.Out, s.Format(), items)
	}
	if len(items) == 0 {
		s.Note("no %s%s", l.Things, l.None)
		return nil
	}
	if more {
		s.Note("%d %s; there are more, --limit 0 lists all", len(items), l.Things)
	}
	rows := make([][]string, len(items))
	for i, item := range items {
		rows[i] = l.Row(item)
	}
	return output.Rows(s.Out, s.Format(), s.Style(), l.Columns, rows)
}
