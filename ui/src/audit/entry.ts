import type { AuditEntry } from '../gen/signalbox/v1/audit_pb'

const runID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** What the subject of an entry is, where it has a page; empty if it has none. */
export type SubjectKind = 'run' | 'batch' | 'workflow' | 'webhook' | ''

/** subjectKind returns what an entry is about. The subject of a redelivery is a delivery, whose page has the name of its webhook. */
export function subjectKind({ subject, project, action }: AuditEntry): SubjectKind {
  if (project === '' || subject === '') return ''
  if (runID.test(subject)) return action.startsWith('batch.') ? 'batch' : 'run'
  if (action.startsWith('workflow.')) return 'workflow'
  return action.startsWith('webhook.') && action !== 'webhook.redeliver' ? 'webhook' : ''
}

/** The filters of the log that the export has, too. */
export interface AuditFilter {
  action: string
  actor: string
  subject: string
}

/** exportPath returns the address of the filtered log as a file. */
export function exportPath(project: string, format: string, filter: AuditFilter, since: number | undefined): string {
  const query = new URLSearchParams({ format })
  for (const name of ['action', 'actor', 'subject'] as const) if (filter[name] !== '') query.set(name, filter[name])
  if (since !== undefined) query.set('since', new Date(since).toISOString())
  return `/v1/projects/${encodeURIComponent(project)}/audit:export?${query.toString()}`
}
