package projection

import "github.com/signalbox-dev/signalbox/internal/run"

// Join appends the records of a later workflow task to those of an earlier one, as the writer does.
func Join(earlier, later run.Update) run.Update {
	if earlier.RunID == "" {
		return later
	}
	merge(&earlier, later)
	compact(&earlier)
	return earlier
}
