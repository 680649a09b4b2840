package legacy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// temporalEngine is the engine of the runs that are copied unchanged.
const temporalEngine = run.LegacyTemporal

// statuses maps the statuses of the source to ours.
func statuses() map[string]run.Status {
	return map[string]run.Status{
		"PENDING": run.Running, "QUEUED": run.Running, "CREATED": run.Running, "SCHEDULED": run.Running,
		"RUNNING": run.Running, "IN_PROGRESS": run.Running,
		"WAITING": run.Waiting, "PAUSED": run.Waiting, "SUSPENDED": run.Waiting, "SLEEPING": run.Waiting,
		"COMPLETED": run.Completed, "SUCCEEDED": run.Completed, "SUCCESS": run.Completed,
		"FAILED": run.Failed, "ERROR": run.Failed, "CANCELED": run.Canceled, "CANCELLED": run.Canceled,
		"TERMINATED": run.Terminated, "TIMED_OUT": run.TimedOut, "TIMEOUT": run.TimedOut,
	}
}

func statusOf(text string) (run.Status, bool) {
	status, ok := statuses()[strings.ToUpper(strings.TrimSpace(text))]
	return status, ok
}

// legacyRun is one run of the source, with its steps, waits and snapshots.
type legacyRun struct {
	row                     Record
	steps, waits, snapshots []Record
}

// imported is a run in the form in which it is written here.
type imported struct {
	run.Run
	engine      string
	fingerprint string
	// open reports that the run was open on an engine that no longer exists: it is settled.
	open     bool
	settled  time.Time
	original json.RawMessage
	steps    []run.Step
	waits    int // number of settled waits
}

// translator converts rows to runs.
type translator struct {
	src       *Source
	project   string // project of all runs; empty: they keep theirs
	namespace string // of workflows without a namespace
}

func (t translator) field(table string, r Record, names string) any {
	return r[t.src.Column(table, names)]
}

// translate converts a run of the source. A run that was settled before keeps the same end time.
func (t translator) translate(from legacyRun, now time.Time) (imported, error) {
	id := Text(from.row["id"])
	at := func(names string) any { return t.field(Runs, from.row, names) }
	status, known := statusOf(Text(from.row["status"]))
	if !known || id == "" {
		return imported{}, fmt.Errorf("the run %q has the status %q, which is none of those that can be imported", id,
			Text(from.row["status"]))
	}
	out := imported{engine: strings.ToLower(Text(from.row["engine"])), settled: now}
	out.fingerprint = fingerprint(from)
	out.open = !status.Terminal() && out.engine != temporalEngine
	out.Run = run.Run{
		ID: id, Project: t.projectOf(from.row), Workflow: t.workflowOf(Text(at("workflow|workflow_name"))),
		Version: sqlrow.Mended(Text(at("version|workflow_version"))),
		Status:  status, Trigger: run.TriggerImport, Actor: sqlrow.Mended(Text(at("actor|created_by"))),
		CreatedAt: timeOf(from.row["created_at"]), StartedAt: timeOf(from.row["started_at"]),
		Input: rawOf(from.row["input"]), Output: rawOf(from.row["output"]), Error: errorOf(from.row["error"]),
	}
	if status.Terminal() {
		out.EndedAt = timeOf(at("completed_at|finished_at|ended_at"))
	}
	if out.CreatedAt.IsZero() {
		out.CreatedAt = out.StartedAt
	}
	if status == run.Waiting && !out.open {
		out.WaitingKind = waitingKind(from.waits)
	}
	out.steps = t.stepsOf(from.steps, out.open, now)
	if out.open {
		was := status
		out.Status, out.EndedAt = run.Canceled, now
		out.Error = run.EngineGone(out.engine, was)
	} else if status.Terminal() && status != run.Completed && out.Error == nil {
		out.Error = &run.Error{Type: errorType, Status: 500, Title: "Ended on another engine",
			Detail: fmt.Sprintf("the run is %s; the engine recorded no reason", status), Instance: "/"}
	}
	out.StatusAt = firstTime(out.EndedAt, out.StartedAt, out.CreatedAt)
	for _, s := range out.steps {
		out.StepsTotal++
		if !s.EndedAt.IsZero() || s.Status == "completed" || s.Status == "failed" || s.Status == "skipped" ||
			s.Status == "canceled" {
			out.StepsDone++
		}
	}
	var err error
	if out.original, out.waits, err = originalOf(from, out.open, now); err != nil {
		return imported{}, err
	}
	failures := []json.RawMessage{rawOf(from.row["error"])}
	for _, step := range from.steps {
		failures = append(failures, rawOf(step["error"]))
	}
	out.redact(failures)
	return out, nil
}

// redact replaces the values in which secrets are usually stored by placeholders, because the sensitive values of its
// definition are not known. The source keeps the values. failures are the source of its errors.
func (r *imported) redact(failures []json.RawMessage) {
	var (
		policy  redact.Policy
		secrets redact.SecretSet
	)
	values := []*json.RawMessage{&r.Input, &r.Output, &r.original}
	runErrors := []*run.Error{r.Error}
	for n := range r.steps {
		values = append(values, &r.steps[n].Input, &r.steps[n].Output)
		runErrors = append(runErrors, r.steps[n].Error)
	}
	hidden := slices.Clone(values)
	for i := range failures {
		hidden = append(hidden, &failures[i])
	}
	for _, v := range hidden {
		_, found := policy.Value(redact.Location{}, *v, nil)
		secrets.Add(found...)
		r.Redacted = r.Redacted || len(found) > 0
	}
	if !r.Redacted {
		return
	}
	for _, v := range values {
		*v, _ = policy.Value(redact.Location{}, *v, &secrets)
	}
	for _, p := range runErrors {
		if p != nil {
			if json.Valid([]byte(p.Detail)) { // an error without a message is shown in full
				shown, _ := policy.Value(redact.Location{}, json.RawMessage(p.Detail), &secrets)
				p.Detail = string(shown)
			}
			for _, text := range []*string{&p.Type, &p.Title, &p.Detail, &p.Instance} {
				*text, _ = secrets.Text(*text)
			}
		}
	}
}

func (t translator) projectOf(r Record) string {
	if t.project != "" {
		return t.project
	}
	return Text(t.field(Runs, r, "project|tenant|tenant_id"))
}

func (t translator) workflowOf(name string) string {
	if name = sqlrow.Mended(name); strings.Contains(name, "/") {
		return name
	}
	return t.namespace + "/" + name
}

// errorType is the type of errors of imported runs.
const errorType = "https://signalbox.dev/errors/legacy"

// stepsOf returns the steps in the order in which they began. Open steps of a settled run end with it.
func (t translator) stepsOf(rows []Record, settle bool, now time.Time) []run.Step {
	began := func(r Record) time.Time { return firstTime(timeOf(r["started_at"]), timeOf(r["created_at"])) }
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b Record) int {
		return cmp.Or(began(a).Compare(began(b)), strings.Compare(Text(a["id"]), Text(b["id"])))
	})
	out := make([]run.Step, len(rows))
	for i, r := range rows {
		name := sqlrow.Mended(Text(t.field(Steps, r, "name|task|step_name")))
		s := run.Step{
			Number: int64(i + 1), Path: "/" +
				name, Task: name, Kind: sqlrow.Mended(Text(r["kind"])), Status: stepStatus(Text(r["status"])),
			StartedAt: began(r), EndedAt: timeOf(t.field(Steps, r, "completed_at|finished_at|ended_at")),
			Input: rawOf(r["input"]), Output: rawOf(r["output"]), Error: errorOf(r["error"]), Sequence: 1,
		}
		if settle && (s.Status == "running" || s.Status == "waiting") {
			s.Status, s.EndedAt = "canceled", now
		}
		if n, err := strconv.Atoi(Text(r["attempt"])); err == nil && n > 0 {
			attempt := run.Attempt{Number: n, StartedAt: s.StartedAt, Error: s.Error}
			if !s.EndedAt.IsZero() {
				ended := s.EndedAt
				attempt.EndedAt = &ended
			}
			s.Attempts = []run.Attempt{attempt}
		}
		out[i] = s
	}
	return out
}

// stepStatus maps a status of a step to ours. An unknown status is shown as it is.
func stepStatus(text string) string {
	if strings.EqualFold(text, "SKIPPED") {
		return "skipped"
	}
	status, ok := statusOf(text)
	switch {
	case !ok:
		return strings.ToLower(sqlrow.Mended(text))
	case status == run.Terminated || status == run.TimedOut:
		return string(run.Failed)
	}
	return string(status)
}

// waitingKind returns what an open run waits for, if the kind of its first open wait is known.
func waitingKind(waits []Record) string {
	for _, w := range waits {
		if !OpenWait(w) {
			continue
		}
		if kind := strings.ToLower(Text(w["kind"])); slices.Contains(
			[]string{run.WaitingEvent, run.WaitingTimer, run.WaitingRetry, run.WaitingQuota, run.WaitingChild,
				run.WaitingPaused}, kind) {
			return kind
		}
	}
	return run.WaitingEvent
}

// originalOf returns the stored form of the source's data: all of it, with the waits of a settled run resolved.
func originalOf(from legacyRun, settle bool, now time.Time) (json.RawMessage, int, error) {
	settled := 0
	waits := make([]Record, len(from.waits))
	for i, w := range from.waits {
		waits[i] = w
		if settle && OpenWait(w) {
			settled++
			waits[i] = maps.Clone(w)
			waits[i]["status"], waits[i]["resolved_at"] = "canceled", now.UTC().Format(time.RFC3339Nano)
		}
	}
	row := readable(from.row)
	delete(row, "input") // they are stored with the run
	delete(row, "output")
	original, err := json.Marshal(
		map[string]any{"row": row, "waits": allReadable(waits), "snapshots": allReadable(from.snapshots)})
	if err != nil {
		return nil, 0, fmt.Errorf("keep the row of the run %q: %w", Text(from.row["id"]), err)
	}
	return json.RawMessage(sqlrow.Mended(string(original))), settled, nil
}

func allReadable(list []Record) []Record {
	out := make([]Record, len(list))
	for i, r := range list {
		out[i] = readable(r)
	}
	return out
}

// readable returns a row in which text that contains a JSON object or array is that value: databases without a JSON
// type store it as text.
func readable(r Record) Record {
	out := make(Record, len(r))
	for name, v := range r {
		out[name] = v
		if text, ok := v.(string); ok && text != "" && (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text)) {
			out[name] = json.RawMessage(text)
		}
	}
	return out
}

// fingerprint changes whenever the source's data of a run changes.
func fingerprint(from legacyRun) string {
	all, err := json.Marshal([]any{from.row, from.steps, from.waits, from.snapshots})
	if err != nil {
		return "" // data without a JSON form cannot be stored either, and originalOf reports it
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:])
}

func firstTime(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}
