// Package reason is the reference of everything that can go wrong in a call of the API: each machine-readable reason
// with its class, the codes it is answered with, and what to do about it.
//
// docs/reference/errors.md is written from it. A test holds the list against the reasons of package fault, so that
// none is missing. The package decides nothing at run time.
package reason

import (
	"fmt"
	"strconv"
	"strings"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/fault"
)

//go:generate go run ./internal/errordocs ../../../docs/reference/errors.md

// Reasons that the API gives by itself, beside those of package fault.
const (
	Internal         = "INTERNAL"
	Canceled         = "CANCELED"
	DeadlineExceeded = "DEADLINE_EXCEEDED"
	Unimplemented    = "UNIMPLEMENTED"
	ForeignHost      = "FOREIGN_HOST"
	CrossOrigin      = "CROSS_ORIGIN"
	ServerStopping   = "SERVER_STOPPING"
)

// Reason is one row of the reference.
type Reason struct {
	Name string
	// Codes it is answered with, the usual one first.
	Codes []connect.Code
	// Meaning in one sentence, and what the caller or the operator does about it.
	Meaning string
	Advice  string
}

// All returns the reference in the order it is printed in.
func All() []Reason {
	return append(callers(), servers()...)
}

func callers() []Reason {
	const (
		invalid   = connect.CodeInvalidArgument
		notFound  = connect.CodeNotFound
		exists    = connect.CodeAlreadyExists
		refused   = connect.CodeFailedPrecondition
		exhausted = connect.CodeResourceExhausted
	)
	return []Reason{
		{fault.InvalidArgument, only(invalid), "A field of the request is missing, unknown or wrong, or the body is not valid JSON.", "Correct what the message and the field violations name."},
		{fault.InvalidPageToken, only(invalid), "The page token was not made by this list, or the filters have changed since.", "List again without a page token; keep the filters while turning pages."},
		{fault.InvalidDocument, only(invalid), "The workflow document has errors; each is a field violation with line and column.", "Correct the document; `signalbox workflow validate FILE` shows the same findings."},
		{fault.InvalidInput, only(invalid), "The input does not fit the workflow's input schema; each violation names its place.", "Correct the input, or publish a version with another schema."},
		{fault.InputTooLarge, only(exhausted), "The input is larger than the limit for inputs.", "Send less, for example a reference to the data; the limit is `runs.max_input_bytes`."},
		{fault.DefinitionTooLarge, only(exhausted), "The workflow document is larger than the limit for documents.", "Split the workflow; the limit is `workflows.max_definition_bytes`."},
		{fault.RequestTooLarge, only(exhausted), "The request, after decompression, is larger than the limit.", "Send less; the limit is `api.max_request_bytes`."},
		{fault.ProjectNotFound, only(notFound), "There is no project of this name.", "Check the name with `signalbox project list`, or create it."},
		{fault.ProjectExists, only(exists), "A project of this name exists.", "Use it, or choose another name."},
		{fault.WorkflowNotFound, only(notFound), "The project has no workflow of this name.", "Check project and name with `signalbox workflow list`."},
		{fault.WorkflowAmbiguous, only(invalid), "Several namespaces have a workflow of this short name.", "Name it in full, as namespace/name."},
		{fault.VersionNotFound, only(notFound), "The workflow has no published version of this number.", "Check it with `signalbox workflow versions NAME`."},
		{fault.DraftNotFound, only(notFound), "The workflow has no draft.", "Save one, or give the document itself."},
		{fault.VersionTaken, only(exists), "This version is published with other content. Published versions never change.", "Raise `document.version` and publish again."},
		{fault.WorkflowPaused, only(refused), "The workflow is paused: it starts no new runs.", "Unpause it, or wait until somebody does."},
		{fault.WorkflowNotPublished, only(refused), "The workflow has a draft only.", "Publish it first."},
		{fault.WorkflowHasOpenRuns, only(refused), "The workflow has open runs and cannot be deleted.", "Wait for them or cancel them, then delete."},
		{fault.RunNotFound, only(notFound), "The project has no run of this ID.", "Check project and ID with `signalbox run list`."},
		{fault.RunEnded, only(refused), "The run has ended already; nothing was changed.", "Nothing: read the run's status."},
		{fault.RunStarting, only(refused), "The run is still being handed over to Temporal.", "Try again in a moment."},
		{fault.RunNotStarted, only(refused), "The run is queued and has not begun, so there is nothing to pause.", "Wait until it has begun, or cancel it."},
		{fault.RunCanceling, only(refused), "The run's cancellation was asked for; it is about to end.", "Wait for its end, or terminate it to end it at once."},
		{fault.RunImported, only(refused), "The run was imported from another engine. It can be read and exported, and replayed with a version that is published here.", "Name a version, or latest, and give what the message says is missing of the input."},
		{fault.RunTooOld, only(refused), "The run was started by a release whose runs could not be paused yet.", "Let it end, cancel it or terminate it; its replay can be paused."},
		{fault.ExecutionMissing, only(refused), "Temporal does not know the run; nothing was changed.", "Cancel it to end it; otherwise the reconciler ends it in a while."},
		{fault.RunElsewhere, only(refused), "Temporal, as this server is connected, does not know the run, which is in another Temporal or may be; nothing was changed. The message and the metadata (`home`, `connected`) name both.", "Operators: point `temporal.address` and `temporal.namespace` back to where the runs are, then try again. A run that is left behind for good is ended by terminating it."},
		{fault.InputRedacted, only(invalid), "The edited input has a mark that stands for a sensitive value, or a patch reads what stands behind one; no run was made.", "Leave the value out of the edit, so that the original one is used, or write the real one."},
		{fault.OriginalSealed, only(refused), "The sensitive values of the run are sealed with a key that the server does not have, or they are damaged.", "Put the key that the message names back into encryption.keys. Without it the run can only be replayed with a new input."},
		{fault.RequestIDReused, only(exists), "The request ID belongs to a run that was started with other arguments.", "Use a new request ID for a new request."},
		{fault.EventInvalid, only(invalid), "An event is no CloudEvent: an attribute is missing or wrong, or the body is in none of the CloudEvents forms. The field violations name each.", "Correct what they name; `id`, `source` and `type` are required."},
		{fault.EventTooLarge, only(exhausted), "The data of an event is larger than the limit, or there are more events in one request than the limit; none was kept.", "Send less, for example a reference to the data, or several requests; the limits are `events.max_data_bytes` and `events.max_batch`."},
		{fault.EventNotFound, only(notFound), "The project has no event of this position or ID.", "Check project, ID and source with `signalbox event list`."},
		{fault.EventAmbiguous, only(invalid), "Several sources have used this event ID.", "Give the source too, or the position."},
		{fault.DeliveryNotFound, only(notFound), "The event has no delivery of this ID; nothing was changed.", "Check it with `signalbox event show ID`."},
		{fault.DispatcherNotOwned, only(refused), "Nobody owns the dispatcher, so nobody can hand it over.", "Nothing: the next worker takes it. `signalbox dispatcher show PROJECT` tells who had it."},
		{fault.BatchNotFound, only(notFound), "The project has no batch of this ID.", "Check project and ID with `signalbox batch list`."},
		{fault.BatchEnded, only(refused), "The batch has ended, so it can be neither paused nor let go on; nothing was changed.", "Nothing: read what became of its runs with `signalbox batch show ID --items`. What failed is done again by `signalbox batch retry ID`."},
		{fault.BatchNothingFailed, only(refused), "No item of the batch has failed, so there is nothing to do again.", "Nothing. Items that were refused stay so: their runs were in no state for it; start another batch when that has changed."},
		{Canceled, only(connect.CodeCanceled), "The caller went away before the answer was there.", "Nothing; what the call had begun may have been done."},
		{DeadlineExceeded, only(connect.CodeDeadlineExceeded), "The call took longer than the caller's deadline, or the server's own.", "Try again; the same request ID makes starting a run safe to repeat."},
		{Unimplemented, only(connect.CodeUnimplemented), "There is no such method, path or encoding.", "Check the address against the reference of the API."},
		{fault.Unidentified, only(connect.CodeUnauthenticated), "The request has no token, or what it has is none that this server knows.", "Send `Authorization: Bearer …`; the command line takes a token from `--token`, `SIGNALBOX_TOKEN` or its context."},
		{fault.TokenExpired, only(connect.CodeUnauthenticated), "The token has expired.", "Use another one; an admin makes it with `signalbox token create`."},
		{fault.TokenRevoked, only(connect.CodeUnauthenticated), "The token was revoked.", "Use another one; an admin makes it with `signalbox token create`."},
		{fault.TokenNotFound, only(notFound), "There is no token of this ID that the caller may see.", "Check it with `signalbox token list`."},
		{fault.TokenExists, only(exists), "A token that is not revoked has this name; or, at the first one, there is a token of an admin already.", "Choose another name, or revoke the other one first."},
		{fault.RateLimited, only(exhausted), "The token makes more requests than `api.rate_limit` allows, or too many without a valid token came from the address.", "Try again after the time given, and make fewer."},
		{ForeignHost, only(connect.CodePermissionDenied), "The listener is open to this machine alone, and the request names another host.", "Use 127.0.0.1 or localhost as the address."},
		{CrossOrigin, only(connect.CodePermissionDenied), "A page of another origin made the request.", "Call the API from a program, or from a page it serves itself."},
	}
}

func servers() []Reason {
	const (
		refused     = connect.CodeFailedPrecondition
		unavailable = connect.CodeUnavailable
	)
	return []Reason{
		{fault.PermissionDenied, only(connect.CodePermissionDenied), "The caller has not the role that the method needs in the project; the metadata name both.", "Use a token with that role; an admin makes one with `signalbox token create`."},
		{fault.EngineUnavailable, only(unavailable), "Temporal cannot be used; nothing was started. The metadata tell `state`, `kind` (`unreachable`, `hung`, `namespace_missing`, `auth_failed`, `tls_error`) and `since` of the connection.", "Try again after the time given. Operators: `signalbox system status` shows what is wrong and since when; check `temporal.address` and Temporal itself."},
		{fault.QueueFull, only(connect.CodeResourceExhausted), "Temporal is away, or no live worker serves the project, and the queue for runs that wait for it is full; nothing was queued.", "Try again later. Operators: `signalbox system status` shows the queue; its size is `runs.queue_when_unavailable.max_runs`."},
		{fault.MemoryExhausted, only(connect.CodeResourceExhausted), "The server is close to its memory limit and takes no new runs; nothing was started. The message names its use, the limit and where the limit comes from.", "Try again after the time given. Operators: `/readyz` shows the same; give the process more memory (`memory_limit`, `GOMEMLIMIT` or its cgroup), or run more of them."},
		{fault.ContractMismatch, only(refused), "Every live worker differs from this server in the names they share, or in Temporal's namespace, so none would take the run; or the runs of this database are in another Temporal than this server. Nothing was started. The message names both sides.", "Operators: run servers and workers of the same version with the same `temporal.address` and `temporal.namespace`; `signalbox system status` lists the workers."},
		{fault.NoWorkerForProject, only(unavailable), "Workers are alive, and none of them serves the project, so nothing would execute the run; nothing was started. The message names the workers and their projects.", "Try again after the time given. Operators: start a worker that serves the project (`projects`; empty: all); `signalbox worker list` shows what each serves."},
		{fault.EngineRefused, []connect.Code{refused, connect.CodeResourceExhausted}, "Temporal refused the request, or is over its limits.", "Operators: the message carries Temporal's answer; check namespace, permissions and limits."},
		{fault.StoreUnavailable, only(unavailable), "The database cannot be reached or cannot write. Whether it did what was asked is not known.", "Try again after the time given; a start with the same request ID, which gives the run that it may have made. Operators: check `store.dsn`, the database and its disk; `/readyz` shows the last error."},
		{fault.LeasesUnavailable, only(unavailable), "The store of leases (Redis) cannot be reached. Dispatchers run on without it; their owners cannot be told or changed.", "Try again after the time given. Operators: check `redis` and Redis itself; `signalbox dispatcher list` shows what is known without it."},
		{ServerStopping, only(unavailable), "This server is stopping.", "Try again at once: another server, or the restarted one, answers. Resume a watch with the last sequence seen."},
		{Internal, only(connect.CodeInternal), "Something broke inside the server. The answer says nothing more on purpose.", "Operators: the log has the cause under the procedure's name. Please report it."},
	}
}

func only(code connect.Code) []connect.Code { return []connect.Code{code} }

// Markdown returns docs/reference/errors.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Errors

Generated by ` + "`go generate ./internal/rpc/reason`" + `; edit internal/rpc/reason.

Every error has a code, one line for people, and details in the types of ` + "`google.rpc`" + `:
` + "`ErrorInfo`" + ` with the reason (domain ` + "`signalbox`" + `), ` + "`BadRequest`" + ` with the fields at fault, and ` + "`RetryInfo`" + ` where
trying again later may help (over HTTP also ` + "`Retry-After`" + `, in seconds). Programs branch on the reason, never on the line.

HTTP is the status over REST and for posted CloudEvents. What is too large is 413 there, so that nobody sends the same again; Connect
knows one status for a code, which is 429 for ` + "`RESOURCE_EXHAUSTED`" + `.

| Reason | Code | HTTP | Meaning | What to do |
|---|---|---|---|---|
`)
	for _, r := range All() {
		var codes, statuses []string
		for _, code := range r.Codes {
			codes = append(codes, "`"+strings.ToUpper(code.String())+"`")
			statuses = append(statuses, strconv.Itoa(HTTPStatus(code, r.Name)))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n",
			r.Name, strings.Join(codes, " or "), strings.Join(statuses, " or "), r.Meaning, r.Advice)
	}
	return b.String()
}

// HTTPStatus returns the HTTP status that REST and the CloudEvents binding give a reason that is answered with a code. Connect's goes by the code alone.
func HTTPStatus(code connect.Code, name string) int {
	switch name {
	case fault.InputTooLarge, fault.DefinitionTooLarge, fault.RequestTooLarge, fault.EventTooLarge:
		return 413 // producers and proxies take a 429 for something that passes
	}
	switch code {
	case connect.CodeCanceled:
		return 499
	case connect.CodeInvalidArgument, connect.CodeFailedPrecondition, connect.CodeOutOfRange:
		return 400
	case connect.CodeUnauthenticated:
		return 401
	case connect.CodePermissionDenied:
		return 403
	case connect.CodeNotFound:
		return 404
	case connect.CodeAlreadyExists, connect.CodeAborted:
		return 409
	case connect.CodeResourceExhausted:
		return 429
	case connect.CodeUnimplemented:
		return 501
	case connect.CodeUnavailable:
		return 503
	case connect.CodeDeadlineExceeded:
		return 504
	case connect.CodeUnknown, connect.CodeInternal, connect.CodeDataLoss:
		return 500
	}
	return 500
}
