// Package permit decides who may call which method: one table, enforced before any method runs, for unary calls and streams alike.
//
//	connect.WithInterceptors(…, permit.New(permit.Options{…}))
//
// A method without a row is refused. docs/reference/access.md is written from the table, and a test walks all methods of the API and holds
// the table against them. Who calls is decided before, by package gate; what is finer than a method (a field that shows more, the
// roles of a new token) is its service's to decide, with [auth.Require].
//
// Whoever has no role in a project is answered as if there were no such project.
package permit

import (
	"strings"

	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/auth"
)

//go:generate go run ./internal/accessdocs ../../../docs/reference/access.md

// Scope is where a role is needed.
type Scope int

// The scopes.
const (
	// Project is the one that the request's field "project" names; empty is the default one.
	Project Scope = iota + 1
	// Name is the project that the request's field "name" names.
	Name
	// ProjectOrAll is as Project; for "-", which stands for all projects and what is in none, it takes an admin of all.
	ProjectOrAll
	// Everywhere is all projects: the platform as a whole.
	Everywhere
	// Visible needs no role: the answer holds what is in projects in which the caller has one. A project that is named has to be one.
	Visible
	// Nowhere needs no role: the answer is the same for all, or about the caller, or its service decides.
	Nowhere
)

// Rule is one row.
type Rule struct {
	// Procedure is "/service/method".
	Procedure string
	Role      auth.Role
	Scope     Scope
	// Note is for people.
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
	add(signalboxv1connect.BatchServiceName, batches()...)
	add(signalboxv1connect.EventServiceName, events()...)
	add(signalboxv1connect.QuotaServiceName, quotas()...)
	add(signalboxv1connect.DispatcherServiceName, dispatchers()...)
	add(signalboxv1connect.WorkerServiceName, Rule{"ListWorkers", "", Visible, ""})
	add(signalboxv1connect.AuditServiceName, audits()...)
	add(signalboxv1connect.TokenServiceName, tokens()...)
	return rules
}

func system() []Rule {
	return []Rule{
		{"GetVersion", "", Nowhere, ""},
		{"GetStatus", auth.Viewer, Everywhere, "it names addresses and projects"},
		{"ResetBreaker", auth.Admin, Everywhere, ""},
		{"Reconcile", auth.Admin, Everywhere, ""},
	}
}

func projects() []Rule {
	return []Rule{
		{"CreateProject", auth.Admin, Everywhere, ""},
		{"ListProjects", "", Visible, ""},
		{"GetProject", auth.Viewer, Name, ""},
		{"UpdateProject", auth.Admin, Name, ""},
	}
}

func workflows() []Rule {
	return []Rule{
		{"ValidateWorkflow", auth.Viewer, Project, ""},
		{"SaveDraft", auth.Publisher, Project, ""},
		{"PublishWorkflow", auth.Publisher, Project, ""},
		{"ListWorkflows", auth.Viewer, Project, ""},
		{"GetWorkflow", auth.Viewer, Project, ""},
		{"ListVersions", auth.Viewer, Project, ""},
		{"DiffVersions", auth.Viewer, Project, ""},
		{"PauseWorkflow", auth.Publisher, Project, ""},
		{"UnpauseWorkflow", auth.Publisher, Project, ""},
		{"DeleteWorkflow", auth.Publisher, Project, ""},
	}
}

func runs() []Rule {
	const unredacted = "`unredacted` takes an admin, and is audited"
	return []Rule{
		{"StartRun", auth.Operator, Project, ""},
		{"GetRun", auth.Viewer, Project, unredacted},
		{"ListRuns", auth.Viewer, Project, ""},
		{"CountRuns", auth.Viewer, Project, ""},
		{"ListSteps", auth.Viewer, Project, unredacted},
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
		{"CreateToken", "", Nowhere, "takes an admin of every project that the token is for"},
		{"ListTokens", "", Nowhere, "lists the tokens that are for no project but those of which the caller is an admin"},
		{"RevokeToken", "", Nowhere, "takes an admin of every project that the token is for, or the token itself"},
		{"WhoAmI", "", Nowhere, ""},
	}
}

// Markdown returns docs/reference/access.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Who may call what

Generated by ` + "`go generate ./internal/rpc/permit`" + `; edit internal/rpc/permit. What roles and tokens are: [access](../access.md).

` + "`admin` may do all; `operator` and `publisher` may do what `viewer` may as well." + ` "In the project" is the project that the request names,
"in all projects" takes a role for ` + "`*`" + `. A project in which the caller has no role is answered as one that does not exist.

| Method | Role | Where | |
|---|---|---|---|
`)
	for _, r := range Table() {
		role := "any token"
		if r.Role != "" {
			role = "`" + string(r.Role) + "`"
		}
		b.WriteString("| `" + strings.TrimPrefix(r.Procedure, "/signalbox.v1.") + "` | " + role + " | " + r.Scope.String() + " | " + r.Note + " |\n")
	}
	b.WriteString(`
Beside the methods:

| Path | Needs |
|---|---|
| ` + "`/livez`, `/readyz`, `grpc.health.v1.Health`, `/`" + ` | nothing |
| ` + "`/metrics`" + ` | ` + "`viewer`" + ` in all projects |
| ` + "`grpc.reflection`" + ` and all else | any token |
`)
	return b.String()
}

// String names the scope for people.
func (s Scope) String() string {
	switch s {
	case Project, Name:
		return "in the project"
	case ProjectOrAll:
		return "in the project; for `-` `admin` in all projects"
	case Everywhere:
		return "in all projects"
	case Visible:
		return "shows what is in the caller's projects"
	case Nowhere:
		return ""
	}
	return "?"
}
