package apierror

import (
	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

//go:generate go run ../../generate errors ../../../docs/reference/errors.md

// Reasons that the API returns besides those of package apperror.
const (
	Internal         = "INTERNAL"
	Canceled         = "CANCELED"
	DeadlineExceeded = "DEADLINE_EXCEEDED"
	Unimplemented    = "UNIMPLEMENTED"
	ForeignHost      = "FOREIGN_HOST"
	CrossOrigin      = "CROSS_ORIGIN"
	ServerStopping   = "SERVER_STOPPING"
	TooManyBodies    = "TOO_MANY_BODIES"
)

// Reason is one row of the reference.
type Reason struct {
	Name string
	// Codes are the codes returned with the reason, the usual one first.
	Codes []connect.Code
	// Meaning is one sentence; Advice is the remedy for the caller or the operator.
	Meaning string
	Advice  string
}

// All returns the reference of all API errors in print order: each machine-readable reason with its codes, its meaning
// and the remedy.
//
// docs/reference/errors.md is generated from it. A test verifies that it lists every reason of package apperror. At run
// time only StatusOf uses it.
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
		{apperror.InvalidArgument, only(invalid), "A field of the request is missing, unknown or wrong, or the body is not " +
			"valid JSON.", "Correct what the message and the field violations name."},
		{apperror.InvalidPageToken, only(invalid),
			"The page token was not made by this list, or the filters have changed since.", "List again without a page token; " +
				"keep the filters while turning pages."},
		{apperror.InvalidDocument, only(invalid), "The workflow document has errors; each is a field violation with line " +
			"and column.", "Correct the document; `signalbox workflow validate FILE` shows the same findings."},
		{apperror.InvalidInput, only(invalid), "The input does not match the workflow's input schema; each violation names " +
			"its position.", "Correct the input, or publish a version with another schema."},
		{apperror.InputTooLarge, only(exhausted), "The input is larger than the limit for inputs.",
			"Send less, for example a reference to the data; the limit is `runs.max_input_bytes`."},
		{apperror.DefinitionTooLarge, only(exhausted), "The workflow document is larger than the limit for documents.",
			"Split the workflow; the limit is `workflows.max_definition_bytes`."},
		{apperror.RequestTooLarge, only(exhausted), "The request, after decompression, is larger than the limit.",
			"Send less; the limit is `api.max_request_bytes`."},
		{apperror.ProjectNotFound, only(notFound), "There is no project of this name.",
			"Check the name with `signalbox project list`, or create it."},
		{apperror.ProjectExists, only(exists), "A project of this name exists.", "Use it, or choose another name."},
		{apperror.WorkflowNotFound, only(notFound), "The project has no workflow of this name.",
			"Check project and name with `signalbox workflow list`."},
		{apperror.WorkflowAmbiguous, only(invalid), "Several namespaces have a workflow of this short name.",
			"Name it in full, as namespace/name."},
		{apperror.VersionNotFound, only(notFound), "The workflow has no published version of this number.",
			"Check it with `signalbox workflow versions NAME`."},
		{apperror.DraftNotFound, only(notFound), "The workflow has no draft.", "Save one, or give the document itself."},
		{apperror.VersionTaken, only(exists),
			"This version is published with other content. Published versions never change.", "Raise `document.version` and " +
				"publish again."},
		{apperror.FunctionNotFound, only(notFound), "The catalog of the project has no such function, or not this version of it.",
			"Check it with `signalbox function list`, or publish it."},
		{apperror.WorkflowPaused, only(refused), "The workflow is paused: it starts no new runs.",
			"Unpause it, or wait until it is unpaused."},
		{apperror.NoSchedule, only(refused), "The newest version of the workflow has no schedule with `cron` or `every`.",
			"Publish a version that has one."},
		{apperror.TooManyTimes, only(refused), "The schedule was due too often in the period.", "Ask for a shorter period."},
		{apperror.GenerationLimit, only(refused), "The run would be too many starts away from one by a person or by the " +
			"clock: workflows start each other, by tasks or by events that they emit.", "End the loop; where it is intended, " +
			"raise `max_generation` of the project."},
		{apperror.WorkflowNotPublished, only(refused), "The workflow has only a draft.", "Publish it first."},
		{apperror.WorkflowHasOpenRuns, only(refused), "The workflow has open runs and cannot be deleted.",
			"Wait for them or cancel them, then delete."},
		{apperror.StepNotFound, only(notFound), "The run has no step of this number, or the step is only counted in the " +
			"summary of a long run.", "List the steps with `signalbox run steps ID`."},
		{apperror.ValueNotRecorded, only(notFound), "Temporal does not have the history that the whole value is read from " +
			"any more, or the value has no part at the pointer.", "Use the shortened value of the step; it shows which parts " +
			"there are."},
		{apperror.RunNotFound, only(notFound), "The project has no run of this ID.",
			"Check project and ID with `signalbox run list`."},
		{apperror.RunEnded, only(refused), "The run has ended already; nothing was changed.",
			"Nothing: read the run's status."},
		{apperror.RunStarting, only(refused), "The run is still being submitted to Temporal.", "Try again in a moment."},
		{apperror.RunNotStarted, only(refused), "The run is queued and has not started, so there is nothing to pause.",
			"Wait until it has started, or cancel it."},
		{apperror.RunCanceling, only(refused), "Cancellation of the run was requested; it is about to end.",
			"Wait for its end, or terminate it to end it at once."},
		{apperror.RunImported, only(refused), "The run was imported from another engine. It can be read and exported, and " +
			"replayed with a version that is published here.", "Name a version, or latest, and supply the parts of the input " +
			"that the message lists as missing."},
		{apperror.ExecutionMissing, only(refused), "Temporal does not have the run; nothing was changed.",
			"Cancel it to end it; otherwise the reconciler ends it in a while."},
		{apperror.RunElsewhere, only(refused), "The Temporal that this server is connected to does not have the run, which " +
			"is or may be in another Temporal; nothing was changed. The message and the metadata (`home`, `connected`) name both.", "Operators: point `temporal.address` and `temporal.namespace` back to the Temporal of the runs, then try again. To end a run that was left behind permanently, terminate it."},
		{apperror.InputRedacted, only(invalid), "The edited input contains a mark in place of a sensitive value, or a " +
			"patch reads the value behind a mark; no run was created.", "Leave the value out of the edit, so that the " +
			"original one is used, or enter the real one."},
		{apperror.OriginalSealed, only(refused), "The sensitive values of the run are sealed with a key that the server " +
			"does not have, or they are damaged.", "Put the key that the message names back into encryption.keys. Without it " +
			"the run can only be replayed with a new input."},
		{apperror.OriginalGone, only(refused), "The database does not have the sealed values of the run any more; it has " +
			"only the marks. Something other than Signalbox deleted them.", "Restore them from a backup (table `originals`). " +
			"Without them the run can only be replayed with a new input."},
		{apperror.RequestIDReused, only(exists), "The request ID belongs to a run that was started with other arguments.",
			"Use a new request ID for a new request."},
		{apperror.EventInvalid, only(invalid), "An event is not a valid CloudEvent: an attribute is missing or wrong, or " +
			"the body is in none of the CloudEvents forms. The field violations name each.", "Correct the named fields; `id`, " +
			"`source` and `type` are required."},
		{apperror.EventTooLarge, only(exhausted), "The data of an event is larger than the limit, or there are more events " +
			"in one request than the limit; none was stored.", "Send less, for example a reference to the data, or several " +
			"requests; the limits are `events.max_data_bytes` and `events.max_batch`."},
		{apperror.EventNotFound, only(notFound), "The project has no event of this position or ID.",
			"Check project, ID and source with `signalbox event list`."},
		{apperror.EventAmbiguous, only(invalid), "Several sources have used this event ID.",
			"Add the source, or use the position."},
		{apperror.DeliveryNotFound, only(notFound), "The event, or for webhooks the project, has no delivery of this ID; " +
			"nothing was changed.", "Check it with `signalbox event show ID` or `signalbox webhook deliveries NAME`."},
		{apperror.DispatcherNotOwned, only(refused), "The dispatcher has no owner, so it cannot be handed over.",
			"Nothing: the next worker takes it. `signalbox dispatcher show PROJECT` shows its previous owner."},
		{apperror.BatchNotFound, only(notFound), "The project has no batch of this ID.",
			"Check project and ID with `signalbox batch list`."},
		{apperror.BatchEnded, only(refused), "The batch has ended, so it can be neither paused nor unpaused; nothing was " +
			"changed.", "Nothing: `signalbox batch show ID --items` shows the results. `signalbox batch retry ID` repeats the " +
			"failed items."},
		{apperror.BatchTotalChanged, only(refused), "The filter selects another number of runs than the caller expected " +
			"(`expected_total`), or more runs of the workflow to stop are open than expected (`expected_open`); nothing was " +
			"changed. The metadata have the number (`total`).", "Repeat the dry run, check what it selects now, and send the " +
			"new number."},
		{apperror.BatchNothingFailed, only(refused), "No item of the batch has failed, so there is nothing to retry.",
			"Nothing. Refused items stay refused: the state of their runs did not allow the action; start another batch when " +
				"that has changed."},
		{apperror.ViewNotFound, only(notFound), "The caller sees no view of this ID in the project; it may have been " +
			"deleted, or is no longer shared.", "Check it with `signalbox view list`."},
		{apperror.ViewChanged, only(refused), "The view was changed since the caller read it; nothing was changed. The " +
			"metadata have the actor and the time of that change (`updater`, `updateTime`).", "Read the view again, then " +
			"repeat the call with its revision."},
		{apperror.ViewExists, only(exists), "The owner has another view of this name in the project, or another view of " +
			"this name is shared there.", "Choose another name, or change that view: send its ID and revision."},
		{apperror.TooManyViews, only(exhausted),
			"The owner has 100 views in the project, or the project has 200 shared ones.", "Delete one first: `signalbox view " +
				"delete NAME`."},
		{apperror.WebhookNotFound, only(notFound), "The project has no webhook of this name.",
			"Check project and name with `signalbox webhook list`."},
		{apperror.WebhookExists, only(exists), "The project has a webhook of this name.",
			"Choose another name, or update that webhook."},
		{apperror.WebhookPaused, only(refused), "The webhook is paused; nothing was sent.",
			"Unpause it: `signalbox webhook unpause NAME`."},
		{apperror.TooManyWebhooks, only(exhausted), "The project has 20 webhooks.",
			"Delete one first: `signalbox webhook delete NAME`."},
		{apperror.ProblemNotFound, only(notFound), "There is no problem of this ID that the caller may see, or it was " +
			"resolved more than 24 hours ago.", "Check the ID with `signalbox problem list`."},
		{apperror.ProblemResolved, only(refused), "The problem no longer exists, so nothing can be done about it; nothing " +
			"was changed.", "Nothing. If it occurs again, it is open again."},
		{apperror.ProblemChanged, only(refused), "The problem was changed since the caller read it: another operator was " +
			"faster, or it was resolved and occurred again. Nothing was changed.", "Read the problem again, then repeat the " +
			"call with its revision."},
		{Canceled, only(connect.CodeCanceled), "The caller disconnected before the response was sent.",
			"Nothing; the call may have taken effect."},
		{DeadlineExceeded, only(connect.CodeDeadlineExceeded), "The call took longer than the caller's deadline, or the " +
			"server's own.", "Try again; the same request ID makes starting a run safe to repeat."},
		{Unimplemented, only(connect.CodeUnimplemented), "There is no such method, path or encoding.",
			"Check the address against the reference of the API."},
		{apperror.Unidentified, only(connect.CodeUnauthenticated), "The request has no token, or its token is unknown.",
			"Send `Authorization: Bearer …`; the command line takes a token from `--token`, `SIGNALBOX_TOKEN` or its context."},
		{apperror.TokenExpired, only(connect.CodeUnauthenticated), "The token has expired.",
			"Use another one; an admin creates it with `signalbox token create`."},
		{apperror.TokenRevoked, only(connect.CodeUnauthenticated), "The token was revoked.",
			"Use another one; an admin creates it with `signalbox token create`."},
		{apperror.TokenNotFound, only(notFound), "There is no token of this ID that the caller may see.",
			"Check it with `signalbox token list`."},
		{apperror.TokenExists, only(exists), "A token of one of the same projects has this name and is not revoked; or, " +
			"for the first token, an admin token exists already.", "Choose another name, or revoke the other one first."},
		{apperror.SessionEnded, only(connect.CodeUnauthenticated),
			"The session was signed out, was revoked, expired, or was not used for `auth.session_idle`.", "Sign in again."},
		{apperror.SessionNotFound, only(notFound), "There is no session of this ID that the caller may see.",
			"Check it with `signalbox token sessions`."},
		{apperror.TooManySessions, only(exhausted), "The token has 100 open sessions.", "Sign out elsewhere, or end " +
			"sessions: `signalbox token sessions` and `signalbox token revoke-session ID`. Those that are not used end after " +
			"`auth.session_idle`."},
		{apperror.NoSession, only(refused), "The request is to end its session, and was not made in a session.",
			"Nothing has to be done; a token is made invalid with `signalbox token revoke`."},
		{apperror.CSRFTokenWrong, only(connect.CodePermissionDenied), "A request that is authenticated by the cookie of a " +
			"session lacks the CSRF token of that session, or has another one.", "Send the `csrf_token` that `GetSession` " +
			"returns in the header `X-Signalbox-CSRF`."},
		{apperror.SignInNotNeeded, only(refused), "The server accepts every caller of its machine (`auth.mode` is `none`), " +
			"so there is nothing to sign in to.", "Call it without a token or a session."},
		{apperror.RateLimited, only(exhausted), "The token exceeds `api.rate_limit` or opens more than 20 sessions per " +
			"minute, the address sent too many requests without a valid token, or the caller has too many documents checked " +
			"at a time.", "Try again after the time given, and send fewer requests."},
		{TooManyBodies, only(exhausted), "The bodies of requests that the server receives or processes at the moment reach " +
			"the bound of this caller or of all callers; or, without a token in the headers, newer requests took the place of " +
			"this one.", "Try again after the time given, and send fewer or smaller requests at a time."},
		{ForeignHost, only(connect.CodePermissionDenied), "The listener accepts requests from this machine only, and the " +
			"request names another host.", "Use 127.0.0.1 or localhost as the address."},
		{CrossOrigin, only(connect.CodePermissionDenied), "A page of another origin made the request.",
			"Call the API from a program, or from a page it serves itself."},
	}
}

func servers() []Reason {
	const (
		refused     = connect.CodeFailedPrecondition
		unavailable = connect.CodeUnavailable
	)
	return []Reason{
		{apperror.PermissionDenied, only(connect.CodePermissionDenied), "The caller lacks the role that the method " +
			"requires in the project; the metadata name both.", "Use a token with that role; an admin creates one with " +
			"`signalbox token create`."},
		{apperror.EngineUnavailable, only(unavailable), "Temporal cannot be used; nothing was started. The metadata have " +
			"`state`, `kind` (`unreachable`, `hung`, `namespace_missing`, `auth_failed`, `tls_error`) and `since` of the " +
			"connection.", "Try again after the time given. Operators: `signalbox system status` shows the cause and its " +
			"start; check `temporal.address` and Temporal itself."},
		{apperror.QueueFull, only(connect.CodeResourceExhausted), "Temporal is unavailable, or no live worker serves the " +
			"project, and the queue of waiting runs is full; nothing was queued.", "Try again later. Operators: `signalbox " +
			"system status` shows the queue; its size is `runs.queue_when_unavailable.max_runs`."},
		{apperror.MemoryExhausted, only(connect.CodeResourceExhausted), "The server is close to its memory limit and " +
			"accepts no new runs; nothing was started. The message names its use, the limit and the source of the limit.", "Try again after the time given. Operators: `/readyz` shows the same; give the process more memory (`memory_limit`, `GOMEMLIMIT` or its cgroup), or run more processes."},
		{apperror.Maintenance, only(unavailable), "The platform is in maintenance: no new runs start, in any project; " +
			"nothing was started. Open runs continue. The message has the reason, the metadata the time since when (`since`).", "Try again when the maintenance has ended. Operators: `signalbox system maintenance off` ends it."},
		{apperror.TooManyWatches, only(connect.CodeResourceExhausted), "This server has the maximum number of open watches " +
			"or exports of the project or of the token, or of different watched lists of runs; the message names " +
			"which.", "Close watches that are not looked at, or try again after the time given."},
		{apperror.ContractMismatch, only(refused), "Every live worker differs from this server in their shared names, or " +
			"in Temporal's namespace, so none would take the run; or open runs of this database are in another Temporal than " +
			"this server. Nothing was started. The message names both sides.", "Operators: run servers and workers of the " +
			"same version with the same `temporal.address` and `temporal.namespace`; `signalbox system status` lists the " +
			"workers. Where a move to another Temporal is meant, `signalbox system adopt-temporal`."},
		{apperror.NoWorkerForProject, only(unavailable), "No live worker serves the project, although others are alive, so " +
			"nothing would execute the run; nothing was started. The message names the workers and their projects.", "Try again after the time given. Operators: start a worker that serves the project (`projects`; empty: all); `signalbox worker list` shows what each serves."},
		{apperror.EngineRefused, []connect.Code{refused, connect.CodeResourceExhausted}, "Temporal refused the request, or " +
			"is over its limits.", "Operators: the message contains Temporal's answer; check namespace, permissions and " +
			"limits."},
		{apperror.EngineListFailed, only(unavailable), "Temporal did not list the open dispatchers, so that nothing was " +
			"examined. Its visibility store serves lists: other requests may work at the same time. The message contains " +
			"Temporal's answer.", "Try again after the time given. Operators: check Temporal's visibility store."},
		{apperror.StoreUnavailable, only(unavailable), "The database cannot be reached or cannot write. The outcome of the " +
			"request is unknown.", "Try again after the time given. Repeat a start with the same request ID: it returns the " +
			"run if one was created. Operators: check `store.dsn`, the database and its disk; `/readyz` shows the last error."},
		{apperror.LeasesUnavailable, only(unavailable), "The store of leases (Redis) cannot be reached. Dispatchers " +
			"continue to run without it; their owners cannot be read or changed.", "Try again after the time given. " +
			"Operators: check `redis` and Redis itself; `signalbox dispatcher list` shows the state that is available without it."},
		{ServerStopping, only(unavailable), "This server is stopping.", "Try again at once: another server, or the " +
			"restarted one, answers. Resume a watch with the last sequence received."},
		{Internal, only(connect.CodeInternal),
			"An internal error of the server. The response deliberately omits the details.", "Operators: the log has the " +
				"cause under the procedure's name. Please report it."},
	}
}

func only(code connect.Code) []connect.Code { return []connect.Code{code} }

// StatusOf returns the HTTP status that REST and the CloudEvents binding use for a reason and code. Connect's status
// depends only on the code.
func StatusOf(code connect.Code, name string) int {
	switch name {
	case apperror.InputTooLarge, apperror.DefinitionTooLarge, apperror.RequestTooLarge, apperror.EventTooLarge:
		return 413 // producers and proxies treat 429 as temporary
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
