import { Link } from '@tanstack/react-router'
import { Download } from 'lucide-react'
import { RunId, spanOptions, spanStart, useFilters, useProject, workflowParams } from '../app'
import { clients, milliseconds, now, timestamp, usePages } from '../api'
import type { AuditEntry } from '../gen/signalbox/v1/audit_pb'
import {
  Button,
  type Column,
  Cut,
  FilterFields,
  Id,
  ListView,
  Menu,
  Page,
  PageHead,
  shortId,
  StateView,
  Time,
  useLinkRefusal,
} from '../kit'
import { exportPath, subjectKind } from './entry'

function Subject({ entry }: { entry: AuditEntry }) {
  const { subject, project } = entry
  switch (subjectKind(entry)) {
    case 'run':
      return <RunId project={project} id={subject} />
    case 'batch':
      return (
        <Id id={subject}>
          <Link to="/p/$project/batches/$id" params={{ project, id: subject }}>
            batch {shortId(subject)}
          </Link>
        </Id>
      )
    case 'workflow':
      return (
        <Link to="/p/$project/workflows/$namespace/$name" params={workflowParams(project, subject)}>
          {subject}
        </Link>
      )
    case 'webhook':
      return (
        <Link to="/p/$project/webhooks/$name" params={{ project, name: subject }}>
          {subject}
        </Link>
      )
    default:
      return <Cut text={subject} />
  }
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
    cell: (e) => <Cut text={e.reason} />,
  },
  {
    id: 'detail',
    title: 'Detail',
    width: 220,
    grow: true,
    cell: (e) => <Cut mono text={e.detail?.json ?? ''} />,
  },
]

/** What was done in a project, by whom, when and why. */
export function AuditPage() {
  const project = useProject()
  const { values, change, filtered, clear } = useFilters(['action', 'actor', 'subject', 'since'])
  const offline = useLinkRefusal()
  const list = usePages(['audit', project, values], async (pageToken, signal) => {
    const since = spanStart(values.since, now())
    const page = await clients.audit.listAudit(
      {
        project,
        pageSize: 100,
        pageToken,
        action: values.action,
        actor: values.actor,
        subject: values.subject,
        ...(since === undefined ? {} : { since: timestamp(since) }),
      },
      { signal },
    )
    return { rows: page.entries, nextPageToken: page.nextPageToken }
  })
  const download = (format: string) => {
    window.location.assign(exportPath(project, format, values, spanStart(values.since, now())))
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
            options: spanOptions('1h', '24h', '7d', '30d'),
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
