package main

// requiredInRequests are the fields without which a request is refused. What is required in some cases only is not
// listed: the reason of a replay that is no dry run, for example.
const requiredInRequests = `
	StartRunRequest.workflow
	TerminateRunRequest.reason
	StartBatchRequest.action
	ExportRunsRequest.format
	CreateProjectRequest.name
	ValidateWorkflowRequest.source
	SaveDraftRequest.source
	DiffVersionsRequest.from DiffVersionsRequest.to
	SaveViewRequest.name
	CreateWebhookRequest.name CreateWebhookRequest.filter WebhookFilter.types
	CreateTokenRequest.name CreateTokenRequest.roles
	SignInRequest.token
	SearchRequest.text
	SetQuotaRequest.quota
`

// requiredInAnswers are the texts and messages that every answer has. Lists, maps, numbers and booleans need no entry.
//
// A run of a dry run has neither an ID nor a reference in Temporal, and a batch of one neither ID nor times; an
// imported run may lack what its engine did not record.
const requiredInAnswers = `
	Run.project Run.workflow Run.status Run.trigger
	Step.path Step.pointer Step.task Step.kind Step.status
	Wait.kind Wait.what
	RunWarning.code
	ControlState.control ControlState.effect
	Stuck.code Stuck.since
	AwaitedKey.name
	TaskSummary.pointer TaskTotals.pointer
	StartRunResponse.run GetRunResponse.run CancelRunResponse.run TerminateRunResponse.run PauseRunResponse.run
	UnpauseRunResponse.run ReplayRunResponse.run
	GetStepResponse.step
	RunBucket.start

	Batch.project Batch.action
	BatchItem.run_id BatchItem.status
	IneligibleRuns.reason
	StartBatchResponse.batch GetBatchResponse.batch PauseBatchResponse.batch UnpauseBatchResponse.batch RetryBatchResponse.batch

	Event.project Event.id Event.source Event.type Event.status Event.receive_time
	Delivery.id Delivery.kind Delivery.status
	AcceptedEvent.id AcceptedEvent.source
	GetEventResponse.event

	Workflow.name Workflow.state Workflow.create_time Workflow.update_time
	WorkflowVersion.version WorkflowVersion.hash WorkflowVersion.publish_time
	RecentRun.id RecentRun.status RecentRun.create_time
	GridTask.pointer GridRun.id GridRun.status GridRun.create_time GridCell.status
	GraphNode.id GraphNode.kind GraphEdge.from GraphEdge.to GraphEdge.kind
	Violation.severity Violation.code Violation.message
	SaveDraftResponse.workflow PublishWorkflowResponse.workflow PublishWorkflowResponse.version GetWorkflowResponse.workflow
	PauseWorkflowResponse.workflow UnpauseWorkflowResponse.workflow StopWorkflowResponse.workflow
	GetVersionGraphResponse.workflow

	SearchGroup.kind SearchHit.project SearchHit.id SearchPart.text

	Project.name Project.task_queue Project.create_time Project.settings
	CreateProjectResponse.project GetProjectResponse.project UpdateProjectResponse.project
	Annotation.kind Annotation.start Annotation.title
	GetQuotaResponse.quota SetQuotaResponse.quota

	Problem.id Problem.kind Problem.code Problem.title Problem.state
	ProblemVersion.version
	GetProblemResponse.problem AcknowledgeProblemResponse.problem SnoozeProblemResponse.problem UpdateProblemResponse.problem
	ReopenProblemResponse.problem

	View.id View.project View.name View.query View.owner View.update_time
	SaveViewResponse.view

	Webhook.id Webhook.project Webhook.name Webhook.url Webhook.format Webhook.filter Webhook.status Webhook.create_time
	WebhookDelivery.id WebhookDelivery.status WebhookDelivery.create_time
	WebhookAttempt.time
	CreateWebhookResponse.webhook CreateWebhookResponse.secret RotateWebhookSecretResponse.webhook RotateWebhookSecretResponse.secret
	GetWebhookResponse.webhook UpdateWebhookResponse.webhook PauseWebhookResponse.webhook UnpauseWebhookResponse.webhook
	TestWebhookResponse.delivery GetWebhookDeliveryResponse.delivery RedeliverWebhookDeliveryResponse.delivery

	Token.id Token.name Token.creator Token.create_time
	CreateTokenResponse.token CreateTokenResponse.secret RevokeTokenResponse.token
	WhoAmIResponse.kind WhoAmIResponse.name
	Session.id Session.token_id Session.token_name Session.create_time Session.last_used_time Session.idle_expire_time Session.expire_time
	CurrentSession.authentication CurrentSession.actor_kind CurrentSession.actor_name
	SignInResponse.current GetSessionResponse.current RevokeSessionResponse.session
	AuditEntry.time AuditEntry.actor_kind AuditEntry.actor AuditEntry.action

	GetVersionResponse.version GetVersionResponse.server_id
	Connection.state Connection.since Connection.breaker Breaker.state
	GetConnectionResponse.state GetConnectionResponse.since GetConnectionResponse.time
	GetStatusResponse.version GetStatusResponse.server_id GetStatusResponse.start_time GetStatusResponse.connection GetStatusResponse.time
	Dependency.name Dependency.state
	Worker.server_id
	StoreFacts.driver
	ConnectionPool.name
	Queue.project Queue.name
	ListQueuesResponse.time
	ResetBreakerResponse.connection
	GetMaintenanceResponse.maintenance SetMaintenanceResponse.maintenance
	Correction.kind Correction.run_id

	WorkerProcess.server_id WorkerProcess.state
	WorkerRegistration.project WorkerRegistration.task_queue
	Dispatcher.project Dispatcher.task_queue Dispatcher.workflow_id Dispatcher.state
	DispatcherLease.state
	DispatcherExecution.run_id
	OwnerChange.time OwnerChange.how
	GetDispatcherResponse.dispatcher HandOverDispatcherResponse.owner
	PlanItem.action PlanItem.kind
`
