package sender

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

// The severities, of which PagerDuty accepts no others.
const (
	critical = "critical"
	warning  = "warning"
	info     = "info"
)

// maxKey is the longest key that PagerDuty accepts, in bytes.
const maxKey = 255

// cloudEvent is the JSON form of an event.
type cloudEvent struct {
	ID      string          `json:"id"`
	Source  string          `json:"source"`
	Type    string          `json:"type"`
	Subject string          `json:"subject"`
	Time    time.Time       `json:"time"`
	Data    json.RawMessage `json:"data"`
}

// notice is what an event means to a person.
type notice struct {
	event   cloudEvent
	project string
	// alert is the name of the condition, key identifies it.
	alert, key, severity string
	summary, detail      string
	labels               map[string]string
	// link is the address of a page about the event; empty where none is known.
	link string
	// since is when the condition began. resolves: the event ends it. resolvable: another event will end it.
	since                time.Time
	resolves, resolvable bool
}

// data are the members of the data of the platform's events that notices use.
type data struct {
	Reason    string    `json:"reason"`
	Since     time.Time `json:"since"`
	Kind      string    `json:"kind"`
	Duration  float64   `json:"durationSeconds"`
	TaskQueue string    `json:"taskQueue"`
	How       string    `json:"how"`
	Evicted   []string  `json:"evicted"`
	Webhook   string    `json:"webhook"`
	Actor     string    `json:"actor"`
	RunID     string    `json:"runId"`
	Workflow  string    `json:"workflow"`
	Delivery  string    `json:"deliveryId"`
	Attempts  int       `json:"attempts"`
	URL       string    `json:"url"`
	BatchID   string    `json:"batchId"`
	Action    string    `json:"action"`
	Total     int64     `json:"total"`
	Failed    int64     `json:"failed"`
	Runs      struct {
		Started   int64 `json:"started"`
		Completed int64 `json:"completed"`
		Same      int64 `json:"failedSameCause"`
		Other     int64 `json:"failedOtherCause"`
	} `json:"runs"`
	Owner struct {
		ServerID string `json:"serverId"`
		Epoch    int64  `json:"epoch"`
	} `json:"owner"`
	Error struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
	} `json:"error"`
	Task struct {
		Name string `json:"name"`
	} `json:"task"`
}

func noticeOf(project string, d webhook.Delivery) (notice, error) {
	n := notice{project: project, alert: "SignalboxEvent", severity: info}
	if err := json.Unmarshal(d.Event, &n.event); err != nil {
		return n, fmt.Errorf("read the event: %w", err)
	}
	if n.event.Time.IsZero() {
		n.event.Time = d.CreatedAt
	}
	n.event.Time = n.event.Time.UTC()
	n.since = n.event.Time
	n.key = keyOf(project, n.event.Source, n.event.ID)
	n.summary = n.event.Type + " from " + n.event.Source
	if n.event.Subject != "" {
		n.summary += " (" + n.event.Subject + ")"
	}
	if strings.HasPrefix(n.event.Type, event.Own) {
		var of data
		// Data in another form than the platform's leaves the fields empty.
		_ = json.Unmarshal(n.event.Data, &of)
		n.own(of)
	}
	return n, nil
}

// own describes an event of the platform.
func (n *notice) own(of data) {
	switch n.event.Type {
	case event.ConnectionDown, event.ConnectionUp:
		n.connection(of)
	case event.OwnerChanged:
		n.alert = "SignalboxDispatcherOwnerChanged"
		n.summary = fmt.Sprintf("The dispatcher of project %s has a new owner: %s, epoch %d (%s)", n.project,
			of.Owner.ServerID, of.Owner.Epoch, of.How)
		n.detail = of.Reason
		n.labels = map[string]string{"task_queue": of.TaskQueue, "outcome": of.How}
	case event.WorkerEvicted:
		n.alert, n.severity = "SignalboxWorkerEvicted", warning
		n.summary = fmt.Sprintf("%d workers of project %s stopped sending heartbeats", len(of.Evicted), n.project)
		if len(of.Evicted) == 1 {
			n.summary = fmt.Sprintf("Worker %s of project %s stopped sending heartbeats", of.Evicted[0], n.project)
		}
		n.labels = map[string]string{"task_queue": of.TaskQueue}
	case event.RunFailed, event.RunTimedOut:
		n.run(of)
	case event.DeliveryDeadLettered:
		n.alert, n.severity = "SignalboxDeliveryDeadLettered", warning
		n.key = keyOf(n.project, "deliveries", of.Workflow)
		n.summary = fmt.Sprintf("A delivery of project %s is not attempted any more", n.project)
		if of.Workflow != "" {
			n.summary = fmt.Sprintf("Events of project %s did not start workflow %s", n.project, of.Workflow)
		}
		n.detail = fmt.Sprintf("Delivery %s, attempts: %d: %s", of.Delivery, of.Attempts, of.Reason)
		n.labels = map[string]string{"workflow": of.Workflow}
	case event.BatchEnded:
		n.batch(of)
	case webhook.Test:
		n.alert = "SignalboxTest"
		n.summary = fmt.Sprintf("Test of webhook %s in project %s", of.Webhook, n.project)
		n.detail = "Sent by " + of.Actor
	}
}

// run describes the failure of a run. The failures of a workflow have the same labels and the same key: a receiver
// shows one condition, with its newest run, however many runs fail.
func (n *notice) run(of data) {
	n.severity, n.link = warning, of.URL
	n.labels = map[string]string{"workflow": of.Workflow}
	if n.event.Type == event.RunTimedOut {
		n.alert, n.summary = "SignalboxRunTimedOut",
			fmt.Sprintf("A run of workflow %s in project %s reached its timeout", of.Workflow, n.project)
	} else {
		n.alert, n.summary = "SignalboxRunFailed",
			fmt.Sprintf("A run of workflow %s in project %s failed", of.Workflow, n.project)
	}
	n.key = keyOf(n.project, n.alert, of.Workflow)
	n.detail = "Run " + of.RunID
	if of.Task.Name != "" {
		n.detail += ", task " + of.Task.Name
	}
	if text := cmp.Or(of.Error.Title, of.Error.Type); text != "" {
		n.detail += ": " + text
		if of.Error.Status != 0 {
			n.detail += fmt.Sprintf(" (status %d)", of.Error.Status)
		}
	}
}

// batch describes the end of a batch, with the outcomes of the runs that it started.
func (n *notice) batch(of data) {
	n.alert, n.link, n.labels = "SignalboxBatchEnded", of.URL, map[string]string{"action": of.Action}
	if of.Failed+of.Runs.Same+of.Runs.Other > 0 {
		n.severity = warning
	}
	n.summary = fmt.Sprintf("A batch of project %s has ended: %s of %d runs", n.project, of.Action, of.Total)
	n.detail = "Batch " + of.BatchID
	if of.Failed > 0 {
		n.detail += fmt.Sprintf(", failed: %d", of.Failed)
	}
	if of.Runs.Started > 0 {
		n.detail += fmt.Sprintf(", runs started: %d, of which completed: %d, failed with the same cause: %d, failed with "+
			"another cause: %d",
			of.Runs.Started, of.Runs.Completed, of.Runs.Same, of.Runs.Other)
	}
}

// connection describes the beginning and the end of an outage, which share their key.
func (n *notice) connection(of data) {
	n.alert, n.severity, n.resolvable = "SignalboxTemporalDisconnected", critical, true
	n.key = keyOf(n.project, "connection", "")
	if !of.Since.IsZero() {
		n.since = of.Since.UTC()
	}
	n.summary = fmt.Sprintf("Temporal is unavailable to project %s", n.project)
	n.detail = "Since " + n.since.Format(time.RFC3339)
	if of.Kind != "" {
		n.detail += ": " + of.Kind
	}
	if n.event.Type == event.ConnectionUp {
		n.resolves = true
		n.summary = fmt.Sprintf("Temporal is available again to project %s", n.project)
		n.detail = fmt.Sprintf("It was unavailable for %v",
			time.Duration(of.Duration*float64(time.Second)).Round(time.Second))
	}
}

// keyOf returns a key of bounded length.
func keyOf(project, source, id string) string {
	key := "signalbox/" + project + "/" + strings.TrimPrefix(source, "/")
	if id != "" {
		key += "/" + id
	}
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "signalbox/" + hex.EncodeToString(sum[:])
}
