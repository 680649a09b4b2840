import type { MessageInitShape } from '@bufbuild/protobuf'
import { type CallOptions, createClient } from '@connectrpc/connect'
import { ProblemService } from '../gen/signalbox/v1/problem_pb'
import { ProjectService } from '../gen/signalbox/v1/project_pb'
import { RunService } from '../gen/signalbox/v1/run_pb'
import { SessionService } from '../gen/signalbox/v1/session_pb'
import { SystemService } from '../gen/signalbox/v1/system_pb'
import { ViewService } from '../gen/signalbox/v1/view_pb'
import type { WatchRequestSchema, WatchResponse } from '../gen/signalbox/v1/watch_pb'
import { later } from './later'
import { transport } from './transport'

// What the frame and the list of runs need at once.
export const problems = createClient(ProblemService, transport)
export const projects = createClient(ProjectService, transport)
export const runs = createClient(RunService, transport)
export const sessions = createClient(SessionService, transport)
export const system = createClient(SystemService, transport)
export const views = createClient(ViewService, transport)

export const audit = later(async () => (await import('../gen/signalbox/v1/audit_pb')).AuditService)
export const batches = later(async () => (await import('../gen/signalbox/v1/batch_pb')).BatchService)
export const dispatchers = later(async () => (await import('../gen/signalbox/v1/dispatcher_pb')).DispatcherService)
export const events = later(async () => (await import('../gen/signalbox/v1/event_pb')).EventService)
export const quotas = later(async () => (await import('../gen/signalbox/v1/quota_pb')).QuotaService)
export const search = later(async () => (await import('../gen/signalbox/v1/search_pb')).SearchService)
export const tokens = later(async () => (await import('../gen/signalbox/v1/token_pb')).TokenService)
export const webhooks = later(async () => (await import('../gen/signalbox/v1/webhook_pb')).WebhookService)
export const workers = later(async () => (await import('../gen/signalbox/v1/worker_pb')).WorkerService)
export const workflows = later(async () => (await import('../gen/signalbox/v1/workflow_pb')).WorkflowService)

export const watches = {
  async *watch(
    request: MessageInitShape<typeof WatchRequestSchema>,
    options: CallOptions,
  ): AsyncIterable<WatchResponse> {
    const { WatchService } = await import('../gen/signalbox/v1/watch_pb')
    yield* createClient(WatchService, transport).watch(request, options)
  },
}
