package invocation

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// Bulk is a command that makes deliveries due for everything that the flags of a list select.
type Bulk[T any, D proto.Message] struct {
	// Thing is what is selected, in the singular; Done is what a dry run does not do to it, such as "retried".
	Thing, Done string
	// Limit is how many are selected at most; 0 means all.
	Limit int
	// DryRun only counts them.
	DryRun bool
	// Call makes the deliveries of one item due, and returns them. Place is its place among all, for errors.
	Call func(item T, place string) ([]D, error)
	// Due describes a number of deliveries that are due.
	Due func(n int) string
}

// Run selects the items with fetch, and calls the server for each.
func (b Bulk[T, D]) Run(s *Invocation, fetch Fetch[T]) error {
	items, more, err := Pages(b.Limit, fetch)
	if err != nil {
		return err
	}
	matching := output.Count(int64(len(items)), b.Thing)
	if more {
		matching += ", and more than --limit"
	}
	if b.DryRun {
		s.Note("matching: %s; nothing was %s", matching, b.Done)
		return nil
	}
	due := make([]D, 0, len(items))
	for i, item := range items {
		made, err := b.Call(item, fmt.Sprintf("number %d of %d", i+1, len(items)))
		if err != nil {
			return err
		}
		due = append(due, made...)
	}
	if s.Format().Structured() {
		return output.List(s.Out, s.Format(), due)
	}
	s.Note("matching: %s; now due: %s", matching, b.Due(len(due)))
	return nil
}
