import { Link } from '@tanstack/react-router'
import { Download } from 'lucide-react'
import { useFilters, useProject, workflowParams } from '../app'
import { clients, milliseconds, now, timestamp, usePages } from '../api'
import type { AuditEntry } from '../gen/signalbox/v1/audit_pb'
import {
  Button,
  type Column,
  FilterFields,
  Id,
  ListView,
  Menu,
  Page,
  PageHead,
  StateView,
  Time,
  useLinkRefusal,
} from '../kit'

const runId = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

function Subject({ entry }: { entry: AuditEntry }) {
  const { subject, project, action } = entry
  if (subject === '') return <>–</>
  if (project !== '' && runId.test(subject)) {
    return action.startsWith('batch.') ? (
      <Id id={subject}>
        <Link
          to="/p/$project/batches/$id"
          params={{ project, id: subject }}
        >{`batch ${subject.slice(0, 8)}…${subject.slice(-4)}`}</Link>
      </Id>
    ) : (
      <Id id={subject}>
        <Link
          to="/p/$project/runs/$id"
          params={{ project, id: subject }}
        >{`${subject.slice(0, 8)}…${subject.slice(-4)}`}</Link>
      </Id>
    )
  }
  if (project !== '' && action.startsWith('workflow.'))
    return (
      <Link to="/p/$project/workflows/$namespace/$name" params={workflowParams(project, subject)}>
        {subject}
      </Link>
    )
  if (project !== '' && action.startsWith('webhook.') && action !== 'webhook.redeliver')
    return (
      <Link to="/p/$project/webhooks/$name" params={{ project, name: subject }}>
        {subject}
      </Link>
    )
  return <span title={subject}>{subject}</span>
}

const columns: Column<AuditEntry>[] = [
  { id: 'time', title: 'Time', width: 84, cell: (e) => <Time at={milliseconds(e.time)} /> },
  {
    id: 'actor',
    title: 'Actor',
    width: 130,
    grow: true,
    cell: (e) => (
      <>
        {e.actor} <span title="Kind of the actor">({e.actorKind})</span>
      </>
    ),
  },
  { id: 'action', title: 'Action', width: 150, cell: (e) => <span className="mono">{e.action}</span> },
  { id: 'subject', title: 'Subject', width: 180, grow: true, cell: (e) => <Subject entry={e} /> },
  {
    id: 'reason',
    title: 'Reason',
    width: 160,
    grow: true,
    cell: (e) => <span title={e.reason}>{e.reason === '' ? '–' : e.reason}</span>,
  },
  {
    id: 'detail',
    title: 'Detail',
    width: 220,
    grow: true,
    cell: (e) => (
      <span className="mono" title={e.detail?.json}>
        {e.detail?.json ?? '–'}
      </span>
    ),
  },
]

const spans: Record<string, number> = { '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000, '30d': 2_592_000_000 }

/** What was done in a project, by whom, when and why. */
export function AuditPage() {
  const project = useProject()
  const { values, change, filtered, clear } = useFilters(['action', 'actor', 'subject', 'since'])
  const offline = useLinkRefusal()
  const span = spans[values.since ?? '']
  const list = usePages(['audit', project, values], async (pageToken, signal) => {
    const page = await clients.audit.listAudit(
      {
        project,
        pageSize: 100,
        pageToken,
        action: values.action ?? '',
        actor: values.actor ?? '',
        subject: values.subject ?? '',
        ...(span === undefined ? {} : { since: timestamp(now() - span) }),
      },
      { signal },
    )
    return { rows: page.entries, nextPageToken: page.nextPageToken }
  })
  const download = (format: string) => {
    const query = new URLSearchParams({ format })
    for (const name of ['action', 'actor', 'subject'] as const)
      if (values[name] !== undefined && values[name] !== '') query.set(name, values[name])
    if (span !== undefined) query.set('since', new Date(now() - span).toISOString())
    window.location.assign(`/v1/projects/${encodeURIComponent(project)}/audit:export?${query.toString()}`)
  }
  return (
    <Page title="Audit" fill>
      <PageHead
        title="Audit"
        actions={
          <Menu
            trigger={
              <Button icon={<Download size={14} aria-hidden />} refused={offline}>
                Export
              </Button>
            }
            items={[
              {
                label: 'CSV',
                onSelect: () => download('csv'),
              },
              {
                label: 'JSON, one entry per line',
                onSelect: () => download('json'),
              },
            ]}
          />
        }
      >
        What was done in {project}, by which actor, when and why.
      </PageHead>
      <FilterFields
        fields={[
          { name: 'action', label: 'Action', placeholder: 'Action, such as run.cancel' },
          { name: 'actor', label: 'Actor' },
          { name: 'subject', label: 'Subject', placeholder: 'Run ID or name' },
          {
            name: 'since',
            label: 'Time',
            options: [
              { value: '1h', label: 'Last hour' },
              { value: '24h', label: 'Last 24 hours' },
              { value: '7d', label: 'Last 7 days' },
              { value: '30d', label: 'Last 30 days' },
            ],
          },
        ]}
        values={values}
        onChange={change}
      />
      <ListView
        list={list}
        what="entries"
        columns={columns}
        rowKey={(e) => String(e.id)}
        filtered={filtered}
        onClear={clear}
        empty={<StateView kind="empty" title={`Nothing was done in ${project} yet.`} />}
      />
    </Page>
  )
}
