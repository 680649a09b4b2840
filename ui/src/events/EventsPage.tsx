import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useFilters, useProject, useRefusal } from '../app'
import { clients, milliseconds, now, timestamp, usePages } from '../api'
import type { Event } from '../gen/signalbox/v1/event_pb'
import {
  Button,
  type Column,
  FilterFields,
  ListView,
  Page,
  PageHead,
  StateView,
  StatusBadge,
  Time,
  useLinkRefusal,
  usePhone,
  vocabularies,
} from '../kit'
import styles from './events.module.css'
import { SendDialog } from './SendDialog'

const spans: Record<string, number> = { '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000 }

const first = (project: string): Column<Event>[] => [
  { id: 'status', title: 'Status', width: 104, cell: (e) => <StatusBadge of="event" status={e.status} /> },
  {
    id: 'position',
    title: 'Position',
    width: 64,
    align: 'end',
    cell: (e) => (
      <Link to="/p/$project/events/$position" params={{ project, position: String(e.position) }}>
        {String(e.position)}
      </Link>
    ),
  },
]
const received: Column<Event> = {
  id: 'received',
  title: 'Received',
  width: 80,
  cell: (e) => <Time at={milliseconds(e.receiveTime)} />,
}
const text = (value: string) => (value === '' ? '–' : <span title={value}>{value}</span>)

/** On a phone, where each column is a line of a card. */
const cardColumns = (project: string): Column<Event>[] => [
  ...first(project),
  { id: 'type', title: 'Type', width: 170, cell: (e) => text(e.type) },
  { id: 'source', title: 'Source', width: 110, cell: (e) => text(e.source) },
  { id: 'subject', title: 'Subject', width: 90, cell: (e) => text(e.subject) },
  {
    id: 'id',
    title: 'ID',
    width: 120,
    cell: (e) => (
      <span className="mono" title={e.id}>
        {e.id}
      </span>
    ),
  },
  received,
  { id: 'reason', title: 'Reason', width: 160, cell: (e) => text(e.reason) },
]

/** In a table, where what other systems chose has two lines for two values: it is long. */
const tableColumns = (project: string): Column<Event>[] => [
  ...first(project),
  {
    id: 'type',
    title: 'Type, source',
    width: 240,
    grow: true,
    cell: (e) => <Two above={text(e.type)} below={text(e.source)} />,
  },
  {
    id: 'id',
    title: 'ID, subject',
    width: 200,
    grow: true,
    cell: (e) => (
      <Two
        above={
          <span className="mono" title={e.id}>
            {e.id}
          </span>
        }
        below={text(e.subject)}
      />
    ),
  },
  received,
  {
    id: 'reason',
    title: 'Reason',
    width: 210,
    grow: true,
    cell: (e) => (
      <span className={styles.lines} title={e.reason}>
        {e.reason === '' ? '–' : e.reason}
      </span>
    ),
  },
]

function Two({ above, below }: { above: React.ReactNode; below: React.ReactNode }) {
  return (
    <>
      <div className={styles.line}>{above}</div>
      <div className={`${styles.line} ${styles.below}`}>{below}</div>
    </>
  )
}

/** The inbox of a project: what came, and what became of it. */
export function EventsPage() {
  const project = useProject()
  const navigate = useNavigate()
  const { values, change, filtered, clear } = useFilters(['status', 'type', 'source', 'id', 'deliveries', 'since'])
  const phone = usePhone()
  const [sending, setSending] = useState(false)
  const refusal = useRefusal()
  const offline = useLinkRefusal()
  const span = spans[values.since ?? '']
  const list = usePages(['events', project, values], async (pageToken, signal) => {
    const page = await clients.events.listEvents(
      {
        project,
        pageSize: 100,
        pageToken,
        statuses: values.status === undefined || values.status === '' ? [] : [values.status],
        type: values.type ?? '',
        source: values.source ?? '',
        id: values.id ?? '',
        dead: values.deliveries === 'dead',
        retrying: values.deliveries === 'retrying',
        ...(span === undefined ? {} : { since: timestamp(now() - span) }),
      },
      { signal },
    )
    return { rows: page.events, nextPageToken: page.nextPageToken }
  })
  return (
    <Page title="Events" fill>
      <PageHead
        title="Events"
        actions={
          <Button refused={offline ?? refusal('operator', project)} onClick={() => setSending(true)}>
            Send a test event…
          </Button>
        }
      >
        <span>The inbox of {project}: what was accepted, and what it started or woke.</span>
        <Link to="/p/$project/webhooks" params={{ project }}>
          Webhooks of {project}
        </Link>
      </PageHead>
      <FilterFields
        fields={[
          {
            name: 'status',
            label: 'Status',
            options: Object.entries(vocabularies.event).map(([value, { word }]) => ({ value, label: word })),
          },
          {
            name: 'deliveries',
            label: 'Deliveries',
            options: [
              { value: 'dead', label: 'With a dead delivery' },
              { value: 'retrying', label: 'With one to be retried' },
            ],
          },
          { name: 'type', label: 'Type' },
          { name: 'source', label: 'Source' },
          { name: 'id', label: 'ID' },
          {
            name: 'since',
            label: 'Time',
            options: [
              { value: '1h', label: 'Last hour' },
              { value: '24h', label: 'Last 24 hours' },
              { value: '7d', label: 'Last 7 days' },
            ],
          },
        ]}
        values={values}
        onChange={change}
      />
      <ListView
        list={list}
        what="events"
        columns={phone ? cardColumns(project) : tableColumns(project)}
        rowHeight={48}
        rowKey={(e) => String(e.position)}
        onOpen={(e) =>
          void navigate({ to: '/p/$project/events/$position', params: { project, position: String(e.position) } })
        }
        filtered={filtered}
        onClear={clear}
        empty={
          <StateView kind="empty" title={`No events in ${project} yet.`}>
            <code>signalbox event send --type com.example.order --source /shop --data '{'{}'}'</code>
          </StateView>
        }
      />
      {sending ? <SendDialog project={project} onClose={() => setSending(false)} /> : null}
    </Page>
  )
}
