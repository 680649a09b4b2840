package outbox

import (
	"strconv"
	"time"

	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// batchData is the data of the event [event.BatchEnded].
type batchData struct {
	Project string `json:"project"`
	BatchID string `json:"batchId"`
	Action  string `json:"action"`
	Total   int64  `json:"total"`
	// Succeeded counts canceled and terminated runs.
	Succeeded int64 `json:"succeeded"`
	Refused   int64 `json:"refused"`
	Failed    int64 `json:"failed"`
	// Runs are the outcomes of the runs that a batch of replays started; nil for others.
	Runs      *batchRuns `json:"runs,omitempty"`
	CreatedAt time.Time  `json:"createdAt"`
	EndedAt   time.Time  `json:"endedAt"`
	URL       string     `json:"url,omitempty"`
}

type batchRuns struct {
	Started          int64 `json:"started"`
	Completed        int64 `json:"completed"`
	FailedSameCause  int64 `json:"failedSameCause"`
	FailedOtherCause int64 `json:"failedOtherCause"`
	Canceled         int64 `json:"canceled"`
	Terminated       int64 `json:"terminated"`
	Unknown          int64 `json:"unknown"`
}

// OfBatch returns the event that reports that a batch, and each run that it started, has ended. A batch that was
// retried ends again.
func OfBatch(b batch.Batch) event.Event {
	d := batchData{
		Project: b.Project, BatchID: b.ID, Action: string(b.Action), Total: b.Total, Refused: b.Refused, Failed: b.Failed,
		CreatedAt: b.CreatedAt.UTC(), EndedAt: b.EndedAt.UTC(),
	}
	if b.Action == batch.Replay {
		d.EndedAt = b.RunsEndedAt.UTC()
		d.Runs = &batchRuns{
			Started: b.Started(), Completed: b.Ended[batch.RunCompleted], FailedSameCause: b.Ended[batch.FailedSameCause],
			FailedOtherCause: b.Ended[batch.FailedOtherCause], Canceled: b.Ended[batch.RunCanceled],
			Terminated: b.Ended[batch.RunTerminated],
			Unknown:    b.Ended[batch.RunUnknown],
		}
	} else {
		d.Succeeded = b.Succeeded
	}
	return event.Event{
		Project: b.Project, ID: b.ID + "-ended-" + strconv.FormatInt(d.EndedAt.UnixMicro(), 10), Source: "/projects/" +
			b.Project + "/batches",
		Type: event.BatchEnded, Subject: b.ID, Time: d.EndedAt, Data: encode(d),
	}
}
