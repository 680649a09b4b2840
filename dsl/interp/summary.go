package interp

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
)

// RecordLimits limit the steps of one run that have records of their own. Every other step is counted in the summary of
// its task. The selection depends on step numbers and the order in which steps end, so that interpreting the same
// history again results in the same records. The zero value is no limit.
type RecordLimits struct {
	// First and Last are the number of steps with records at the beginning and at the end of the run, Failures the
	// number of failed steps with records, in the order of their end. Open steps always have records.
	First, Last, Failures int64
	// Pending is the number of changed steps at which Advance yields, so that their records are taken before it
	// continues. It is below Last: the record of a step has been taken at least once before the step leaves the last
	// ones.
	Pending int
}

// DefaultRecordLimits are the limits of every run.
func DefaultRecordLimits() RecordLimits {
	return RecordLimits{First: 5_000, Last: 4_000, Failures: 1_000, Pending: 250}
}

// Summary summarizes the steps between the first and the last ones. It is cumulative: a later one replaces an earlier
// one.
type Summary struct {
	// From and To are the numbers of the first and the last step in between. Those of them that have no record, or one
	// that is not Kept, are counted in Tasks.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Open are the numbers of the steps in between that have not ended yet, ascending.
	Open []int64 `json:"open,omitempty"`
	// Tasks are the summaries that changed since the last call of TakeRecords, by pointer.
	Tasks []TaskSummary `json:"tasks"`
}

// TaskSummary counts the steps of one task that have no records of their own. Durations are in microseconds.
type TaskSummary struct {
	Pointer   string        `json:"pointer"`
	Task      string        `json:"task"`
	Kind      string        `json:"kind"`
	Count     int64         `json:"count"`
	Completed int64         `json:"completed,omitempty"`
	Failed    int64         `json:"failed,omitempty"`
	Skipped   int64         `json:"skipped,omitempty"`
	Canceled  int64         `json:"canceled,omitempty"`
	Shortest  time.Duration `json:"shortest"`
	Longest   time.Duration `json:"longest"`
	Total     time.Duration `json:"total"`
}

// Merge returns s with the tasks of an earlier summary of the same run that s lacks.
func (s *Summary) Merge(earlier *Summary) *Summary {
	if s == nil || earlier == nil {
		return cmp.Or(s, earlier)
	}
	merged := *s
	merged.Tasks = slices.Clone(s.Tasks)
	has := make(map[string]bool, len(s.Tasks))
	for _, t := range s.Tasks {
		has[t.Pointer] = true
	}
	for _, t := range earlier.Tasks {
		if !has[t.Pointer] {
			merged.Tasks = append(merged.Tasks, t)
		}
	}
	merged.sort()
	return &merged
}

func (s *Summary) sort() {
	slices.SortFunc(s.Tasks, func(x, y TaskSummary) int { return cmp.Compare(x.Pointer, y.Pointer) })
}

func (t *TaskSummary) add(status Status, took time.Duration) {
	t.Count++
	switch status { //nolint:exhaustive // these are the statuses of steps that have ended
	case StatusCompleted:
		t.Completed++
	case StatusFailed:
		t.Failed++
	case StatusSkipped:
		t.Skipped++
	case StatusCanceled:
		t.Canceled++
	}
	if t.Count == 1 || took < t.Shortest {
		t.Shortest = took
	}
	t.Longest = max(t.Longest, took)
	t.Total += took
}

// summarizer selects the steps that keep their records and counts the others.
type summarizer struct {
	limits RecordLimits
	// recent are the steps above limits.First that are among the last limits.Last: step n is at (n-limits.First-1) %
	// limits.Last.
	recent []recentStep
	// open are the steps that were open when they left the last ones.
	open     map[int64]bool
	failures int64
	tasks    []TaskSummary
	index    map[*dsl.Task]int // into tasks
	changed  map[int]bool      // of tasks
	dirty    bool
}

// recentStep is a step while it is among the last: open is nil once it has ended.
type recentStep struct {
	open   *step
	task   *dsl.Task
	status Status
	took   time.Duration
	kept   bool
}

func newSummarizer(l RecordLimits) summarizer {
	return summarizer{limits: l, open: map[int64]bool{}, index: map[*dsl.Task]int{}, changed: map[int]bool{}}
}

func (b *summarizer) bounded() bool { return b.limits.Last > 0 }

// last is the number of the newest step that is neither among the first nor among the last, of total.
func (b *summarizer) last(total int64) int64 { return total - b.limits.Last }

// entered adds s as the latest step. It returns the open step that leaves the last ones; nil if there is none.
func (b *summarizer) entered(s *step) *step {
	place := s.number - b.limits.First - 1
	if !b.bounded() || place < 0 {
		return nil
	}
	entry := recentStep{open: s, task: s.task}
	if place < b.limits.Last {
		b.recent = append(b.recent, entry)
		return nil
	}
	leaving := b.recent[place%b.limits.Last]
	b.recent[place%b.limits.Last] = entry
	b.dirty = true
	switch {
	case leaving.open != nil:
		leaving.open.kept = true
		b.open[leaving.open.number] = true
	case !leaving.kept:
		b.count(leaving.task, leaving.status, leaving.took)
	}
	return leaving.open
}

// ended records that s has ended, of total steps. It reports whether s has a record.
func (b *summarizer) ended(s *step, total int64) bool {
	if !b.bounded() {
		return true
	}
	if s.status == StatusFailed && b.failures < b.limits.Failures {
		b.failures++
		s.kept = true
	} else {
		s.kept = false
	}
	took := max(0, s.endedAt.Sub(s.startedAt)).Truncate(time.Microsecond)
	switch {
	case s.number <= b.limits.First:
		return true
	case s.number > b.last(total):
		b.recent[(s.number-b.limits.First-1)%b.limits.Last] = recentStep{
			task: s.task, status: s.status, took: took, kept: s.kept}
		return true
	}
	delete(b.open, s.number)
	b.dirty = true
	if !s.kept {
		b.count(s.task, s.status, took)
	}
	return s.kept
}

func (b *summarizer) count(task *dsl.Task, status Status, took time.Duration) {
	i, known := b.index[task]
	if !known {
		i = len(b.tasks)
		b.index[task] = i
		b.tasks = append(b.tasks, TaskSummary{Pointer: task.Pointer, Task: task.Name, Kind: string(task.Body.Kind())})
	}
	b.tasks[i].add(status, took)
	b.changed[i] = true
}

// recorded reports whether a step has a record of its own when there are total steps.
func (b *summarizer) recorded(s *step, total int64) bool {
	return !b.bounded() || s.number <= b.limits.First || s.number > b.last(total) || s.kept
}

// take returns the changes since the last call; nil if there are none.
func (b *summarizer) take(total int64) *Summary {
	if !b.dirty {
		return nil
	}
	s := &Summary{From: b.limits.First + 1, To: b.last(total), Open: slices.Sorted(maps.Keys(b.open))}
	for i := range b.changed {
		s.Tasks = append(s.Tasks, b.tasks[i])
	}
	s.sort()
	b.dirty = false
	clear(b.changed)
	return s
}

// summaryState is a summarizer in a snapshot.
type summaryState struct {
	// Limits are those that the run began with: the selection of steps with records must not change during a run.
	Limits   RecordLimits  `json:"limits"`
	Failures int64         `json:"failures"`
	Tasks    []TaskSummary `json:"tasks,omitempty"`
	// Recent contains, for each step of summarizer.recent by number, the index of its task (into Names, then Tasks) and
	// its status, and its duration in microseconds if it has ended, as variable-length integers.
	Recent []byte   `json:"recent,omitempty"`
	Names  []string `json:"names,omitempty"` // pointers of tasks
}

// endedStatuses are the statuses of steps in summaryState.Recent, by code; 0 is a step that is open.
func endedStatuses() []Status {
	return []Status{"", StatusCompleted, StatusFailed, StatusSkipped, StatusCanceled}
}

// statusCodes is the number of codes of a step in summaryState.Recent: each status, and each with the record kept.
const statusCodes = 10

func (b *summarizer) save(total int64) *summaryState {
	if !b.bounded() {
		return nil
	}
	s := &summaryState{Limits: b.limits, Failures: b.failures, Tasks: b.tasks}
	names := map[*dsl.Task]int{}
	statuses := endedStatuses()
	for n := max(b.limits.First, b.last(total)) + 1; n <= total; n++ {
		r := b.recent[(n-b.limits.First-1)%b.limits.Last]
		i, known := names[r.task]
		if !known {
			i = len(s.Names)
			names[r.task] = i
			s.Names = append(s.Names, r.task.Pointer)
		}
		code := max(0, slices.Index(statuses, r.status))
		if r.kept {
			code += len(statuses)
		}
		s.Recent = binary.AppendUvarint(s.Recent,
			uint64(i*statusCodes+code)) //nolint:gosec // both are small and not negative
		if r.open == nil {
			s.Recent = binary.AppendUvarint(s.Recent, uint64(r.took.Microseconds())) //nolint:gosec // not negative
		}
	}
	return s
}

// restoreSummary restores the summarizer of a snapshot; steps are the open ones, by number.
func restoreSummary(s *summaryState, total int64, tasks map[string]*dsl.Task,
	steps map[int64]*step) (summarizer, error) {
	if s == nil {
		return summarizer{}, nil
	}
	b := newSummarizer(s.Limits)
	b.failures, b.tasks = s.Failures, s.Tasks
	for i, t := range s.Tasks {
		if tasks[t.Pointer] == nil {
			return b, fmt.Errorf("no task %q in the document", t.Pointer)
		}
		b.index[tasks[t.Pointer]] = i
	}
	for n, open := range steps {
		if n > b.limits.First && n <= b.last(total) {
			open.kept = true
			b.open[n] = true
		}
	}
	first := max(b.limits.First, b.last(total)) + 1
	if total > b.limits.First {
		b.recent = make([]recentStep, min(b.limits.Last, total-b.limits.First))
	}
	data, statuses := s.Recent, endedStatuses()
	for n := first; n <= total; n++ {
		code, size := binary.Uvarint(data)
		if size <= 0 || code/statusCodes >= uint64(len(s.Names)) {
			return b, errors.New("the recent steps cannot be read")
		}
		data = data[size:]
		r := recentStep{task: tasks[s.Names[code/statusCodes]], open: steps[n]}
		if r.task == nil {
			return b, fmt.Errorf("no task %q in the document", s.Names[code/statusCodes])
		}
		if status := int(code % statusCodes); status%len(statuses) != 0 {
			r.status, r.kept = statuses[status%len(statuses)], status >= len(statuses)
			took, size := binary.Uvarint(data)
			if size <= 0 {
				return b, errors.New("the recent steps cannot be read")
			}
			data = data[size:]
			r.took = time.Duration(took) * time.Microsecond //nolint:gosec // it was written from a duration
		} else if r.open == nil {
			return b, fmt.Errorf("no frame of step %d", n)
		}
		b.recent[(n-b.limits.First-1)%b.limits.Last] = r
	}
	return b, nil
}
