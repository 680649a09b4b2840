// Package storetest is the conformance suite of stores, which a test runs on a real database.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t testing.TB) storetest.Opener { … })
//	}
//
// Each test gets a database of its own and may open it more than once, as several processes would. [Postgres] creates
// such databases on a server from the environment.
//
// The suite is independent of SQL: tests of one database are in the packages of that database.
package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/function"
	"github.com/signalbox-dev/signalbox/internal/maintenance"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/retention"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
	"github.com/signalbox-dev/signalbox/internal/sealingkey"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/activity"
	"github.com/signalbox-dev/signalbox/internal/store/events"
	"github.com/signalbox-dev/signalbox/internal/store/runrow"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/system"
	"github.com/signalbox-dev/signalbox/internal/worker"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// Store combines the Store interfaces of the domain packages.
type Store interface {
	run.ReconcileStore
	clusters
	workflow.Store
	function.Store
	run.LogStore
	project.Store
	installation
	worker.Store
	Events() *Events
	credentials
	waited
	sealedValues
	sealingkey.Store
	Batches() *Batches
	retention.Store
	Quotas() *store.Quotas
	reports
	Ping(ctx context.Context) error
	Activity() *activity.Projects
	Database() *sqldb.DB
	Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error)
}

// clusters is the part of the store that records where runs are.
type clusters interface {
	start.PlacementStore
	// LeftIn is LeftIn of [control.ClusterReader].
	LeftIn(ctx context.Context, id string) (run.ClusterID, error)
	RestoredRows(ctx context.Context, since time.Time) (system.RestoredRows, error)
}

// reports are the parts of the store that describe many runs at once.
type reports interface {
	Verdicts() *Verdicts
	Statistics() *runrow.Statistics
	Search() *store.Search
	Annotations() *store.Annotations
	Problems() *store.Problems
	Views() *store.Views
	Webhooks() *store.Webhooks
	Outbox() *events.Outbox
}

// waited are the parts of the store that store and read what runs wait for.
type waited interface {
	Awaited() *runrow.Awaited
	Waits() *runrow.Waits
}

// credentials are the parts of the store that store hashes of credentials.
type credentials interface {
	Tokens() *store.Tokens
	Sessions() *store.Sessions
}

// sealedValues are the parts of the store that store sealed values.
type sealedValues interface {
	Originals() *runrow.Originals
	Payloads() *store.Payloads
}

// installation are the parts of the store about the platform as a whole.
type installation interface {
	auditLog
	Facts(ctx context.Context) system.StoreFacts
	maintenance.Store
}

// auditLog also stores entries of actions that changed no row.
type auditLog interface {
	audit.Store
	WriteAuditOnce(ctx context.Context, e audit.Entry) error
}

// Opener opens one database, migrated; the store is closed when the test ends. If a database belongs to one process, it
// returns the same store each time.
type Opener func(t testing.TB) Store

// Run runs the suite. newDatabase creates an empty database for one test.
func Run(t *testing.T, newDatabase func(t testing.TB) Opener) {
	t.Helper()
	for _, tt := range slices.Concat(cases(), eventCases()) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(t, newDatabase(t))
		})
	}
	t.Run("payloads", func(t *testing.T) {
		t.Parallel()
		runPayloads(t, newDatabase)
	})
}

// test is one test of the suite.
type test struct {
	name string
	test func(t *testing.T, open Opener)
}

func cases() []test {
	return []test{
		{"projects", testProjects},
		{"search", testSearch},
		{"update a project", testUpdateProject},
		{"parking", testParking},
		{"parked projects with events", testParkedProjectsWithWork},
		{"parking at once", testParkingAtOnce},
		{"drafts", testDrafts},
		{"publish", testPublish},
		{"resources", testResources},
		{"functions", testFunctions},
		{"publish at once", testPublishAtOnce},
		{"find and list workflows", testListWorkflows},
		{"list versions", testListVersions},
		{"pause", testPause},
		{"delete workflow", testDeleteWorkflow},
		{"definitions not found", testDefinitionsNotFound},
		{"maintenance", testMaintenance},
		{"tokens", testTokens},
		{"sessions", testSessions},
		{"originals", testOriginals},
		{"payloads without a run", testPayloadsWithoutARun},
		{"insert run", testInsertRun},
		{"labels", testLabels},
		{"related runs", testRelatedRuns},
		{"failed step", testFailedStep},
		{"awaited runs", testAwaited},
		{"children of canceled runs", testCanceledAncestors},
		{"waits of a run", testWaits},
		{"listeners and events that may concern each other", testMissed},
		{"insert run at once", testInsertRunAtOnce},
		{"starts at once", testStartsAtOnce},
		{"remove unstarted", testRemoveUnstarted},
		{"hand over", testHandOver},
		{"cancel", testCancel},
		{"finish missing", testFinishMissing},
		{"failure groups", testFailureGroups},
		{"problems", testProblems},
		{"views", testViews},
		{"views at once", testViewsAtOnce},
		{"webhooks", testWebhooks},
		{"events match webhooks once", testWebhookMatching},
		{"deliveries of webhooks", testWebhookDeliveries},
		{"deliveries of webhooks at once", testWebhookClaimsAtOnce},
		{"retention of webhook deliveries", testWebhookRetention},
		{"failing webhooks", testFailingWebhooks},
		{"failures become events", testFailureEvents},
		{"failures that nothing receives", testUnwantedFailures},
		{"failures after failures", testAfterFailure},
		{"lineages", testLineages},
		{"dead deliveries become events", testDeadLetterEvents},
		{"failures become events once", testFailureEventsAtOnce},
		{"runs not found", testRunsNotFound},
		{"list runs", testListRuns},
		{"list runs and filters agree", testFilterMatches},
		{"retries", testRetries},
		{"runs page under inserts", testRunsPageUnderInserts},
		{"steps", testSteps},
		{"logs", testLogs},
		{"filters of steps", testStepFilters},
		{"caught steps", testCaughtSteps},
		{"facts", testFacts},
		{"search of steps", testStepSearch},
		{"totals of steps", testStepTotals},
		{"updates", testUpdates},
		{"updates are guarded", testUpdatesGuarded},
		{"summaries", testSummaries},
		{"summaries in any order", testSummariesInAnyOrder},
		{"partial updates", testPartialUpdates},
		{"start of a run", testStartOfARun},
		{"terminal stays", testTerminalStays},
		{"updates in any order", testUpdatesInAnyOrder},
		{"open runs", testOpenRuns},
		{"correct run", testCorrectRun},
		{"follow execution", testFollowExecution},
		{"repairs", testRepairs},
		{"repairs among many", testRepairsAmongMany},
		{"end from outside", testEndFromOutside},
		{"home", testHome},
		{"left runs", testLeftRuns},
		{"restored rows", testRestoredRows},
		{"sealing keys", testSealingKeys},
		{"Temporal servers of workers", testWorkerPlaces},
		{"updates in bulk", testUpdatesInBulk},
		{"concurrent updates", testConcurrentUpdates},
		{"odd text", testOddText},
		{"exact values", testExactValues},
		{"audit list", testAuditList},
		{"audit with its change", testAuditWithItsChange},
		{"context", testContext},
		{"queue", testQueue},
		{"ends in the queue", testQueueEnds},
		{"size of the queue", testQueueBound},
		{"disclose a run", testDiscloseRun},
		{"disclose a run or remove it", testDiscloseOrRemove},
		{"quota", testQuota},
		{"places", testSlots},
		{"slots of children", testSlotsOfChildren},
		{"queue without limit", testQueueWithoutLimit},
		{"ends in the admission queue", testAdmissionQueueEnds},
		{"slots at once", testSlotsAtOnce},
		{"steps of a period", testStepsOfAPeriod},
		{"unused steps", testUnusedSteps},
		{"steps at once", testStepsAtOnce},
		{"periods turn", testPeriodEnds},
		{"workers", testWorkers},
		{"one at a time", testExclusive},
		{"one at a time among many", testExclusiveAmongMany},
	}
}

func eventCases() []test {
	return []test{
		{"publish events", testPublishEvents},
		{"publish events at once", testPublishEventsAtOnce},
		{"list events", testListEvents},
		{"fence", testFence},
		{"route events", testRouteEvents},
		{"deliveries of a run", testRunDeliveries},
		{"partials", testPartials},
		{"claim deliveries", testClaimDeliveries},
		{"lanes", testLanes},
		{"lanes in any order", testLanesInAnyOrder},
		{"redeliver", testRedeliver},
		{"redeliver with a newer version", testRedeliverNewerVersion},
		{"redeliver in a lane", testRedeliverInALane},
		{"park", testPark},
		{"no event is missed", testNoEventIsMissed},
		{"one owner at a time", testOneOwnerAtATime},
		{"progress", testProgress},
		{"backlogs", testBacklogs},
		{"news", testNews},
		{"listeners", testListeners},
		{"listeners by value", testListenersByValue},
		{"earlier events", testEarlierEvents},
		{"earlier events of a run that events start", testEarlierEventsOfStarted},
		{"earlier events are bounded", testEarlierEventsAreBounded},
		{"earlier events while events are published", testEarlierAgainstPublish},
		{"listeners end with their run", testListenersEnd},
		{"listen against publish", testListenAgainstPublish},
		{"triggers", testTriggers},
		{"timers", testTimers},
		{"owners", testOwners},
		{"events not found", testEventsNotFound},
		{"verdicts", testVerdicts},
		{"statistics of workflows", testWorkflowStatistics},
		{"longest runs", testLongestRuns},
		{"steps of runs by task", testTaskRows},
		{"verdicts against updates", testVerdictsAgainstUpdates},
		{"overdue runs", testOverdue},
		{"waiting runs that do not process signals", testSuspects},
		{"failed tasks", testFailures},
		{"reserve endings", testReserveEndings},
		{"delete runs", testDeleteRuns},
		{"delete runs by count", testDeleteRunsByCount},
		{"delete events", testDeleteEvents},
		{"delete history", testDeleteHistory},
		{"batches", testBatches},
		{"batch outcomes", testBatchOutcomes},
		{"runs of batches that no worker has taken", testBatchNotTaken},
		{"pause a batch", testBatchPause},
		{"retry what is left of a batch", testBatchRetryOfRemainingItems},
		{"select the runs of a batch", testBatchSelection},
		{"stop a workflow", testStopWorkflow},
		{"batches not found", testBatchesNotFound},
		{"outages", testOutages},
		{"publications", testPublications},
		{"concurrent workers of a batch", testConcurrentBatchWorkers},
	}
}

const (
	here  = project.Default
	hello = "examples/hello"
)

// at is the n-th time of a test, to the microsecond.
func at(n int) time.Time {
	return time.Date(2026, 3, 29, 1, 59, 59, 123456000, time.UTC).Add(time.Duration(n) * time.Second)
}

func entry(action, projectName, subject string) audit.Entry {
	return audit.Entry{
		Time: at(0), Actor: auth.Actor{Kind: auth.KindLocal, Name: "ada"}, Action: action, Project: projectName,
		Subject: subject,
	}
}

// newRun returns a run as the service creates it.
func newRun(id string, n int) run.Run {
	return run.Run{
		ID: id, Project: here, Workflow: hello, Version: "1.0.0", DocumentHash: "sha256:aa", Status: run.Queued,
		QueuedReason: run.QueuedStarting, StatusAt: at(n), RequestID: "request-" + id, Trigger: run.TriggerAPI, Actor: "ada",
		CreatedAt: at(n), Input: json.RawMessage(`{"name":"Ada"}`), Interpreter: 1,
	}
}

func insert(t testing.TB, s Store, r run.Run) run.Run {
	t.Helper()
	stored, made, err := s.InsertRun(t.Context(), r, entry(audit.RunStart, r.Project, r.ID))
	require.NoError(t, err)
	require.True(t, made)
	return stored
}

func apply(t testing.TB, s Store, updates ...run.Update) []run.Transition {
	t.Helper()
	transitions, err := s.ApplyUpdates(t.Context(), updates)
	require.NoError(t, err)
	return transitions
}

// state returns an update that sets the status of a run.
func state(id string, position int64, status run.Status) run.Update {
	u := run.Update{
		RunID: id, ExecutionID: "execution-1", Position: position,
		State: &run.State{Status: status, Since: at(int(position)), StartedAt: at(1), StepsTotal: position,
			StepsDone: position - 1},
	}
	if status.Terminal() {
		u.State.EndedAt = at(int(position))
	}
	if status == run.Waiting {
		u.State.WaitingKind = "timer"
	}
	return u
}

// get returns a run as its updates made it; the time of the update is the store's own.
func get(t testing.TB, s Store, id string) run.Run {
	t.Helper()
	r, err := s.GetRun(t.Context(), here, id)
	require.NoError(t, err)
	r.WrittenAt = time.Time{}
	return r
}

func steps(t testing.TB, s Store, id string) []run.Step {
	t.Helper()
	listPage, err := s.ListSteps(t.Context(), here, id, run.StepFilter{Limit: 10000})
	require.NoError(t, err)
	list := listPage.Steps
	return list
}

// requireError requires a fault with a message that contains the subject.
func requireError(t testing.TB, err error, class apperror.Class, reason, subject string) {
	t.Helper()
	f, ok := apperror.From(err)
	require.True(t, ok, "not a fault: %v", err)
	require.Equal(t, reason, f.Reason)
	require.Equal(t, class, f.Class)
	require.Contains(t, f.Message, fmt.Sprintf("%q", subject))
}

// audited lists the audit entries of a subject, newest first.
func audited(t testing.TB, s Store, subject string) []audit.Entry {
	t.Helper()
	list, err := s.ListAudit(t.Context(), audit.Filter{Subject: subject, Limit: 1000})
	require.NoError(t, err)
	return list
}
