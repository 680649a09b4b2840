package projection

import "github.com/signalbox-dev/signalbox/internal/run"

const (
	// batchSteps and batchBytes bound the steps of one transaction and their approximate size. One step may be larger.
	batchSteps = 2000
	batchBytes = 4 << 20
	// batchLogs bounds the logs of a part of an update, of up to 256 KiB each.
	batchLogs = 8
)

// transactions divides updates into transactions. An update that is too large for one is divided into partial ones. The
// last of them, which updates the run's own row, is written after all its steps.
func transactions(updates []run.Update) [][]run.Update {
	var all [][]run.Update
	steps, bytes := batchSteps+1, 0 // the first update begins a transaction
	for _, u := range updates {
		for _, part := range divide(u) {
			size := part.Size()
			if steps+len(part.Steps) > batchSteps || bytes+size > batchBytes {
				all, steps, bytes = append(all, nil), 0, 0
			}
			all[len(all)-1] = append(all[len(all)-1], part)
			steps, bytes = steps+len(part.Steps), bytes+size
		}
	}
	return all
}

// divide returns the parts of an update that fit into a transaction, in the order of writing.
func divide(u run.Update) []run.Update {
	var parts []run.Update
	rest := u
	rest.Steps, rest.Logs = nil, nil
	for logs := u.Logs; len(logs) > 0; {
		n := min(len(logs), batchLogs)
		parts = append(parts, run.Update{
			RunID: u.RunID, ExecutionID: u.ExecutionID, Position: u.Position, Logs: logs[:n:n], Sensitive: u.Sensitive,
			Partial: true,
		})
		logs = logs[n:]
	}
	left := batchBytes - rest.Size()
	room, first := left, 0
	for i := range u.Steps {
		size := u.Steps[i].Size()
		if i > first && (i-first == batchSteps || size > room) {
			parts = append(parts, run.Update{
				RunID: u.RunID, ExecutionID: u.ExecutionID, Position: u.Position, Steps: u.Steps[first:i:i], Sensitive: u.Sensitive,
				Partial: true,
			})
			room, first = left, i
		}
		room -= size
	}
	rest.Steps = u.Steps[first:]
	return append(parts, rest)
}
