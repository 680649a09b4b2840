// Package permission authenticates requests and decides which callers may call which method: one table, enforced before
// any method runs, for unary calls and streams alike.
//
//	connect.WithInterceptors(…, permission.NewInterceptor(permission.InterceptorOptions{…}))
//
// A method without a row is refused. docs/reference/access.md is generated from the table, and a test compares all
// methods of the API with it. Checks finer than a method (a field that reveals more, the roles of a new token) are in
// the services, with [auth.Require].
//
// For a caller without a role in a project, the response is the same as for a project that does not exist.
package permission

import (
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/run/control"
)

//go:generate go run ../../generate access ../../../docs/reference/access.md

// Scope is where a role is required.
type Scope int

// The scopes.
const (
	// Project is the project in the request's field "project"; empty means the default one.
	Project Scope = iota + 1
	// Name is the project in the request's field "name".
	Name
	// ProjectOrAll equals Project; "-", all projects and data without a project, requires an admin of all projects.
	ProjectOrAll
	// Everywhere is all projects: the platform as a whole.
	Everywhere
	// Visible requires no role: the response shows only projects in which the caller has one. A named project must be one
	// of them.
	Visible
	// Nowhere requires no role: the response is the same for all callers, or is about the caller, or the service decides.
	Nowhere
)

// Rule is one row.
type Rule struct {
	// Procedure is "/service/method".
	Procedure string
	Role      auth.Role
	Scope     Scope
	// Note is a remark for readers of the page.
	Note string
}

// Table returns all rows, by service.
func Table() []Rule {
	var rules []Rule
	add := func(service string, rows ...Rule) {
		for _, r := range rows {
			r.Procedure = "/" + service + "/" + r.Procedure
			rules = append(rules, r)
		}
	}
	add(signalboxv1connect.SystemServiceName, system()...)
	add(signalboxv1connect.ProjectServiceName, projects()...)
	add(signalboxv1connect.WorkflowServiceName, workflows()...)
	add(signalboxv1connect.RunServiceName, runs()...)
	add(signalboxv1connect.WatchServiceName, Rule{"Watch", auth.Viewer, Project, ""})
	add(signalboxv1connect.SearchServiceName, Rule{"Search", auth.Viewer, Project,
		"IDs are looked up in all projects in which the caller has a role; what is found is redacted"})
	add(signalboxv1connect.ViewServiceName, views()...)
	add(signalboxv1connect.WebhookServiceName, webhooks()...)
	add(signalboxv1connect.BatchServiceName, batches()...)
	add(signalboxv1connect.ProblemServiceName, problems()...)
	add(signalboxv1connect.EventServiceName, events()...)
	add(signalboxv1connect.QuotaServiceName, quotas()...)
	add(signalboxv1connect.DispatcherServiceName, dispatchers()...)
	add(signalboxv1connect.WorkerServiceName, Rule{"ListWorkers", "", Visible, ""})
	add(signalboxv1connect.AuditServiceName, audits()...)
	add(signalboxv1connect.TokenServiceName, tokens()...)
	add(signalboxv1connect.SessionServiceName, sessions()...)
	return rules
}

func system() []Rule {
	return []Rule{
		{"GetVersion", "", Nowhere, ""},
		{"GetConnection", "", Nowhere, "the page of every project shows it"},
		{"GetStatus", auth.Viewer, Everywhere, "the response contains addresses and projects"},
		{"ListQueues", auth.Viewer, Everywhere, "the response contains projects"},
		{"ResetBreaker", auth.Admin, Everywhere, ""},
		{"Reconcile", auth.Admin, Everywhere, ""},
		{"AdoptTemporal", auth.Admin, Everywhere, ""},
		{"CheckRestore", auth.Admin, Everywhere, ""},
		{"ListSealingKeys", auth.Admin, Everywhere, ""},
		{"GetMaintenance", "", Nowhere, "the page of every project shows it"},
		{"SetMaintenance", auth.Admin, Everywhere, ""},
	}
}

func projects() []Rule {
	return []Rule{
		{"CreateProject", auth.Admin, Everywhere, ""},
		{"ListProjects", "", Visible, ""},
		{"GetProject", auth.Viewer, Name, ""},
		{"UpdateProject", auth.Admin, Name, ""},
		{"ListAnnotations", auth.Viewer, Project, ""},
	}
}

func workflows() []Rule {
	return []Rule{
		{"ValidateWorkflow", auth.Viewer, Project, ""},
		{"AssistDocument", auth.Viewer, Project, ""},
		{"SaveDraft", auth.Publisher, Project, ""},
		{"PublishWorkflow", auth.Publisher, Project, ""},
		{"ListWorkflows", auth.Viewer, Project, ""},
		{"FindWorkflows", "", Visible, ""},
		{"GetWorkflow", auth.Viewer, Project, ""},
		{"GetWorkflowGrid", auth.Viewer, Project, ""},
		{"ListVersions", auth.Viewer, Project, ""},
		{"DiffVersions", auth.Viewer, Project, ""},
		{"GetVersionGraph", auth.Viewer, Project, ""},
		{"PauseWorkflow", auth.Publisher, Project, ""},
		{"UnpauseWorkflow", auth.Publisher, Project, ""},
		{"SetSchedule", auth.Operator, Project, ""},
		{"ListDueTimes", auth.Viewer, Project, ""},
		{"BackfillWorkflow", auth.Operator, Project, ""},
		{"StopWorkflow", auth.Publisher, Project,
			"it pauses the workflow and cancels runs; its dry run requires both roles, too"},
		{"DeleteWorkflow", auth.Publisher, Project, ""},
		{"PublishFunction", auth.Publisher, Project, ""},
		{"ListFunctions", auth.Viewer, Project, ""},
		{"GetFunction", auth.Viewer, Project, ""},
		{"DeleteFunction", auth.Publisher, Project, ""},
	}
}

// AlsoRequired returns the role that a method requires in addition to that of its row, in the same scope; empty for
// most methods.
func AlsoRequired(procedure string) auth.Role {
	if procedure == signalboxv1connect.WorkflowServiceStopWorkflowProcedure {
		return auth.Operator
	}
	return ""
}

func runs() []Rule {
	const unredacted = "`unredacted` requires an admin, and is audited"
	return []Rule{
		{"StartRun", auth.Operator, Project, ""},
		{"GetRun", auth.Viewer, Project, unredacted},
		{"ListRuns", auth.Viewer, Project, ""},
		{"CountRuns", auth.Viewer, Project, ""},
		{"ListSteps", auth.Viewer, Project, unredacted},
		{"GetStep", auth.Viewer, Project, unredacted},
		{"GetStepValue", auth.Viewer, Project, "redacted"},
		{"ListLogs", auth.Viewer, Project, "redacted"},
		{"SummarizeSteps", auth.Viewer, Project, ""},
		{"ListWaits", auth.Viewer, Project, "redacted"},
		{"WatchRun", auth.Viewer, Project, ""},
		{"CancelRun", auth.Operator, Project, ""},
		{"TerminateRun", auth.Operator, Project, ""},
		{"PauseRun", auth.Operator, Project, ""},
		{"UnpauseRun", auth.Operator, Project, ""},
		{"ReplayRun", auth.Operator, Project, ""},
		{"ExportRun", auth.Viewer, Project, "redacted"},
		{"ExportRuns", auth.Viewer, Project, "redacted"},
	}
}

func views() []Rule {
	const shared = "sharing requires an operator; shared views are changed only by their owner or an admin, which is " +
		"audited"
	return []Rule{
		{"ListViews", auth.Viewer, Project, "the caller's own and the shared ones"},
		{"SaveView", auth.Viewer, Project, shared},
		{"DeleteView", auth.Viewer, Project, shared},
	}
}

func webhooks() []Rule {
	return []Rule{
		{"CreateWebhook", auth.Admin, Project, "the response has the secret"},
		{"ListWebhooks", auth.Viewer, Project, "without secrets and secret parts of addresses"},
		{"GetWebhook", auth.Viewer, Project, "likewise"},
		{"UpdateWebhook", auth.Admin, Project, ""},
		{"PauseWebhook", auth.Admin, Project, ""},
		{"UnpauseWebhook", auth.Admin, Project, ""},
		{"RotateWebhookSecret", auth.Admin, Project, "the response has the secret"},
		{"DeleteWebhook", auth.Admin, Project, ""},
		{"TestWebhook", auth.Operator, Project, ""},
		{"ListWebhookDeliveries", auth.Viewer, Project, ""},
		{"GetWebhookDelivery", auth.Viewer, Project, ""},
		{"RedeliverWebhookDelivery", auth.Operator, Project, ""},
	}
}

func batches() []Rule {
	return []Rule{
		{"StartBatch", auth.Operator, Project, ""},
		{"GetBatch", auth.Viewer, Project, ""},
		{"ListBatches", auth.Viewer, Project, ""},
		{"ListBatchItems", auth.Viewer, Project, ""},
		{"PauseBatch", auth.Operator, Project, ""},
		{"UnpauseBatch", auth.Operator, Project, ""},
		{"RetryBatch", auth.Operator, Project, ""},
	}
}

func problems() []Rule {
	const (
		seen    = "requires a role in the project of the problem; for one without a project, in all projects"
		changed = "requires an operator in the project of the problem; for one without a project, in all projects"
	)
	return []Rule{
		{"ListProblems", "", Visible, "those without a project require a role in all projects"},
		{"CountProblems", "", Visible, "those without a project require a role in all projects"},
		{"GetProblem", "", Nowhere, seen},
		{"AcknowledgeProblem", "", Nowhere, changed},
		{"SnoozeProblem", "", Nowhere, changed},
		{"UpdateProblem", "", Nowhere, changed},
		{"ReopenProblem", "", Nowhere, changed},
	}
}

func events() []Rule {
	return []Rule{
		{"PublishEvents", auth.Operator, Project, "posted CloudEvents too"},
		{"ListEvents", auth.Viewer, Project, ""},
		{"GetEvent", auth.Viewer, Project, ""},
		{"RedeliverEvent", auth.Operator, Project, ""},
	}
}

func quotas() []Rule {
	return []Rule{
		{"GetQuota", auth.Viewer, Project, ""},
		{"SetQuota", auth.Admin, Project, ""},
		{"ResumeQuota", auth.Operator, Project, ""},
	}
}

func dispatchers() []Rule {
	return []Rule{
		{"ListDispatchers", "", Visible, ""},
		{"GetDispatcher", auth.Viewer, Project, ""},
		{"HandOverDispatcher", auth.Admin, Project, ""},
		{"ReconcileDispatchers", auth.Admin, Everywhere, ""},
	}
}

func audits() []Rule {
	return []Rule{
		{"ListAudit", auth.Viewer, ProjectOrAll, ""},
		{"ExportAudit", auth.Viewer, ProjectOrAll, ""},
	}
}

func tokens() []Rule {
	return []Rule{
		{"CreateToken", "", Nowhere, "requires an admin of every project that the token is for"},
		{"ListTokens", "", Nowhere, "lists only tokens for which the caller is an admin of every project"},
		{"RevokeToken", "", Nowhere, "requires an admin of every project that the token is for, or the token itself"},
		{"WhoAmI", "", Nowhere, ""},
	}
}

// ControlRoles returns the role that each control requires.
func ControlRoles() map[control.Control]auth.Role {
	roles := map[control.Control]auth.Role{}
	required := map[string]auth.Role{}
	for _, rule := range Table() {
		required[rule.Procedure] = rule.Role
	}
	for c, procedure := range map[control.Control]string{
		control.Cancel:      signalboxv1connect.RunServiceCancelRunProcedure,
		control.Terminate:   signalboxv1connect.RunServiceTerminateRunProcedure,
		control.Pause:       signalboxv1connect.RunServicePauseRunProcedure,
		control.Unpause:     signalboxv1connect.RunServiceUnpauseRunProcedure,
		control.ResumeQuota: signalboxv1connect.QuotaServiceResumeQuotaProcedure,
		control.Replay:      signalboxv1connect.RunServiceReplayRunProcedure,
		control.Export:      signalboxv1connect.RunServiceExportRunProcedure,
	} {
		roles[c] = required[procedure]
	}
	return roles
}

func sessions() []Rule {
	return []Rule{
		{"SignIn", "", Nowhere, "needs no token in the header: it is in the message"},
		{"GetSession", "", Nowhere, ""},
		{"SignOut", "", Nowhere, "ends only the session of the request"},
		{"ListSessions", "", Nowhere,
			"lists only sessions of the caller's token, and of tokens for which the caller is an admin of every project"},
		{"RevokeSession", "", Nowhere, "requires an admin of every project that the session's token is for, or that token"},
	}
}
