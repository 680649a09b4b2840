package main

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/internal/annotation"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/rpc/handler"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
	"github.com/signalbox-dev/signalbox/internal/run/explain"
	"github.com/signalbox-dev/signalbox/internal/search"
	"github.com/signalbox-dev/signalbox/internal/view"
	"github.com/signalbox-dev/signalbox/internal/webhook"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// enumeration is a set of texts. An empty text of an answer is left out, so no set has it.
type enumeration struct {
	// name is that of its schema.
	name string
	// fields are the fields with these values, each as "Message.field".
	fields string
	values []string
}

// enumerations returns the sets, each from the package that defines it.
func enumerations() []enumeration {
	return []enumeration{
		{"RunStatus", `Run.status AwaitedRun.status RecentRun.status GridRun.status RunFilter.statuses CountRunsResponse.more`, texts(run.Statuses())},
		{"QueuedReason", `Run.queued_reason AwaitedRun.queued_reason`, run.QueuedReasons()},
		{"WaitingKind", `Run.waiting_kind AwaitedRun.waiting_kind Step.waiting_kind RunFilter.waiting`, run.WaitingKinds()},
		{"Trigger", `Run.trigger RunFilter.trigger`, run.Triggers()},
		{"Control", `Run.controls ControlState.control`, texts(control.Controls())},
		{"StepStatus", `Step.status GridCell.status ListStepsRequest.statuses`, run.StepStatuses()},
		{"WaitKind", `Wait.kind`, explain.Kinds()},
		{"StuckCode", `Stuck.code`, run.Codes()},
		{"StuckCause", `Stuck.cause RunFilter.cause`, run.Causes()},
		{"CorrectionKind", `Correction.kind`, texts(run.CorrectionKinds())},
		{"BatchAction", `Batch.action StartBatchRequest.action`, texts(batch.Actions())},
		{"BatchStatus", `Batch.status ListBatchesRequest.statuses`, texts(batch.Statuses())},
		{"BatchItemStatus", `BatchItem.status ListBatchItemsRequest.status`, texts(batch.ItemStatuses())},
		{"BatchOutcome", `BatchItem.outcome ListBatchItemsRequest.outcome`, texts(batch.AllOutcomes())},
		{"EventStatus", `Event.status ListEventsRequest.statuses`, texts(event.Statuses())},
		{"DeliveryStatus", `Delivery.status`, texts(event.DeliveryStatuses())},
		{"WebhookFormat", `Webhook.format CreateWebhookRequest.format`, texts(webhook.Formats())},
		{"WebhookStatus", `Webhook.status`, handler.WebhookStatuses()},
		{"WebhookDeliveryStatus", `WebhookDelivery.status ListWebhookDeliveriesRequest.statuses`,
			texts(webhook.DeliveryStatuses())},
		{"DueTimeOutcome", `DueTime.outcome ListDueTimesRequest.outcomes`, texts(event.Outcomes())},
		{"ScheduleOverlap", `ScheduleSettings.overlap`, texts(handler.ScheduleOverlaps())},
		{"WorkflowState", `Workflow.state ListWorkflowsRequest.states FindWorkflowsRequest.states`, workflow.States()},
		{"ProblemKind", `Problem.kind ListProblemsRequest.kinds`, texts(problem.Kinds())},
		{"ProblemState", `Problem.state ListProblemsRequest.states`, texts(problem.States())},
		{"AnnotationKind", `Annotation.kind ListAnnotationsRequest.kinds ListAnnotationsResponse.more`,
			texts(annotation.Kinds())},
		{"RunColumn", `ViewQuery.columns`, view.Columns()},
		{"DispatcherState", `Dispatcher.state ListDispatchersRequest.states`, texts(dispatchtype.Statuses())},
		{"LeaseState", `DispatcherLease.state`, texts(dispatchtype.LeaseStates())},
		{"WorkerState", `WorkerProcess.state ListWorkersRequest.states`, texts(dispatchtype.WorkerStatuses())},
		{"ConnectionState", `Connection.state GetConnectionResponse.state`, texts(conntype.States())},
		{"ConnectionKind", `Connection.kind GetConnectionResponse.kind`, texts(conntype.Kinds())},
		{"BreakerState", `Breaker.state`, texts(conntype.BreakerStates())},
		{"DependencyState", `Dependency.state`, health.States()},
		{"SearchKind", `SearchGroup.kind`, texts(search.Kinds())},
		{"SearchStatus", `SearchHit.status`, distinct(texts(run.Statuses()), texts(batch.Statuses()),
			texts(webhook.DeliveryStatuses()), workflow.States(), texts(problem.States()))},
		{"Role", `Project.roles Token.roles CreateTokenRequest.roles WhoAmIResponse.roles CurrentSession.roles`,
			texts(auth.Roles())},
	}
}

// distinct returns the values of several sets, sorted.
func distinct(sets ...[]string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(sets...))))
}

func texts[S ~string](values []S) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// tables are what the protos do not say about their fields.
type tables struct {
	// enums are the names of enumerations by field.
	enums    map[string]string
	required map[string]bool
	// seen are the fields that occur in the document.
	seen map[string]bool
}

func newTables() *tables {
	t := &tables{enums: map[string]string{}, required: map[string]bool{}, seen: map[string]bool{}}
	for _, e := range enumerations() {
		for field := range strings.FieldsSeq(e.fields) {
			t.enums[field] = e.name
		}
	}
	for field := range strings.FieldsSeq(requiredInRequests + requiredInAnswers) {
		t.required[field] = true
	}
	return t
}

// enumeration returns the name of the enumeration of a text, or of the texts in a list or map; empty for any text. A
// status or state of any text is an error.
func (t *tables) enumeration(field protoreflect.FieldDescriptor) (string, error) {
	name := nameOf(field)
	t.seen[name] = true
	found := t.enums[name]
	isStatus := slices.Contains([]string{"status", "statuses", "state", "states"}, string(field.Name()))
	if found == "" && isStatus && field.Kind() == protoreflect.StringKind {
		return "", fmt.Errorf("describe the field %s: it has no values in enumerations.go", name)
	}
	return found, nil
}

// isRequired reports whether a field is listed as required.
func (t *tables) isRequired(field protoreflect.FieldDescriptor) bool {
	return t.required[nameOf(field)]
}

// unused returns an error if a table names a field that does not occur.
func (t *tables) unused() error {
	for _, e := range enumerations() {
		for field := range strings.FieldsSeq(e.fields) {
			if !t.seen[field] {
				return fmt.Errorf("enumerations.go names %s, which no REST path has", field)
			}
		}
	}
	for field := range strings.FieldsSeq(requiredInRequests + requiredInAnswers) {
		if !t.seen[field] {
			return fmt.Errorf("required.go names %s, which no REST path has", field)
		}
	}
	return nil
}

// nameOf returns the name of a field as the tables write it.
func nameOf(field protoreflect.FieldDescriptor) string {
	return string(field.ContainingMessage().Name()) + "." + string(field.Name())
}
