import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useFilters, useProject, useRefusal } from '../app'
import { clients, milliseconds, now, timestamp, usePages } from '../api'
import type { Event } from '../gen/signalbox/v1/event_pb'
import { Button, type Column, FilterFields, ListView, Page, PageHead, StateView, StatusBadge, Time, useLinkRefusal, vocabularies } from '../kit'
import { SendDialog } from './SendDialog'

const spans: Record<string, number> = { '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000 }

const columns = (project: string): Column<Event>[] => [
  { id: 'status', title: 'Status', width: 104, cell: (e) => <StatusBadge of="event" status={e.status} /> },
  { id: 'position', title: 'Position', width: 64, align: 'end', cell: (e) => <Link to="/p/$project/events/$position" params={{ project, position: String(e.position) }}>{String(e.position)}</Link> },
  { id: 'type', title: 'Type', width: 170, grow: true, cell: (e) => <span title={e.type}>{e.type}</span> },
  { id: 'source', title: 'Source', width: 110, grow: true, cell: (e) => <span title={e.source}>{e.source}</span> },
  { id: 'subject', title: 'Subject', width: 90, grow: true, cell: (e) => (e.subject === '' ? '–' : <span title={e.subject}>{e.subject}</span>) },
  { id: 'id', title: 'ID', width: 120, grow: true, cell: (e) => <span className="mono" title={e.id}>{e.id}</span> },
  { id: 'received', title: 'Received', width: 80, cell: (e) => <Time at={milliseconds(e.receiveTime)} /> },
  { id: 'reason', title: 'Reason', width: 160, grow: true, cell: (e) => (e.reason === '' ? '–' : <span title={e.reason}>{e.reason}</span>) },
]

/** The inbox of a project: what came, and what became of it. */
export function EventsPage() {
  const project = useProject()
  const navigate = useNavigate()
  const { values, change, filtered, clear } = useFilters(['status', 'type', 'source', 'id', 'deliveries', 'since'])
  const [sending, setSending] = useState(false)
  const refusal = useRefusal()
  const offline = useLinkRefusal()
  const span = spans[values.since ?? '']
  const list = usePages(['events', project, values], async (pageToken, signal) => {
    const page = await clients.events.listEvents({
      project, pageSize: 100, pageToken, statuses: values.status === undefined || values.status === '' ? [] : [values.status],
      type: values.type ?? '', source: values.source ?? '', id: values.id ?? '', dead: values.deliveries === 'dead', retrying: values.deliveries === 'retrying',
      ...(span === undefined ? {} : { since: timestamp(now() - span) }),
    }, { signal })
    return { rows: page.events, nextPageToken: page.nextPageToken }
  })
  return (
    <Page title="Events" fill>
      <PageHead title="Events" actions={<Button refused={offline ?? refusal('operator', project)} onClick={() => { setSending(true) }}>Send a test event…</Button>}>
        <span>The inbox of {project}: what was accepted, and what it started or woke.</span>
        <Link to="/p/$project/webhooks" params={{ project }}>Webhooks of {project}</Link>
      </PageHead>
      <FilterFields
        fields={[
          { name: 'status', label: 'Status', options: Object.entries(vocabularies.event).map(([value, { word }]) => ({ value, label: word })) },
          { name: 'deliveries', label: 'Deliveries', options: [{ value: 'dead', label: 'With a dead delivery' }, { value: 'retrying', label: 'With one to be retried' }] },
          { name: 'type', label: 'Type' },
          { name: 'source', label: 'Source' },
          { name: 'id', label: 'ID' },
          { name: 'since', label: 'Time', options: [{ value: '1h', label: 'Last hour' }, { value: '24h', label: 'Last 24 hours' }, { value: '7d', label: 'Last 7 days' }] },
        ]}
        values={values}
        onChange={change}
      />
      <ListView
        list={list}
        what="events"
        columns={columns(project)}
        rowKey={(e) => String(e.position)}
        onOpen={(e) => { void navigate({ to: '/p/$project/events/$position', params: { project, position: String(e.position) } }) }}
        filtered={filtered}
        onClear={clear}
        empty={<StateView kind="empty" title={`No events in ${project} yet.`}><code>signalbox event send --type com.example.order --source /shop --data '{'{}'}'</code></StateView>}
      />
      {sending ? <SendDialog project={project} onClose={() => { setSending(false) }} /> : null}
    </Page>
  )
}
