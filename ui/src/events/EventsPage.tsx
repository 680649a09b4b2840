import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { listed, spanOptions, spanStart, useFilters, useProject, useRefusal } from '../app'
import { clients, milliseconds, now, timestamp, usePages } from '../api'
import type { Event } from '../gen/signalbox/v1/event_pb'
import {
  Button,
  type Column,
  Cut,
  FilterFields,
  ListView,
  orDash,
  Page,
  PageHead,
  StateView,
  StatusBadge,
  statusOptions,
  Time,
  useLinkRefusal,
  usePhone,
} from '../kit'
import styles from './events.module.css'
import { SendDialog } from './SendDialog'

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

/** On a phone, where each column is a line of a card. */
const cardColumns = (project: string): Column<Event>[] => [
  ...first(project),
  { id: 'type', title: 'Type', width: 170, cell: (e) => <Cut text={e.type} /> },
  { id: 'source', title: 'Source', width: 110, cell: (e) => <Cut text={e.source} /> },
  { id: 'subject', title: 'Subject', width: 90, cell: (e) => <Cut text={e.subject} /> },
  {
    id: 'id',
    title: 'ID',
    width: 120,
    cell: (e) => <Cut mono text={e.id} />,
  },
  received,
  { id: 'reason', title: 'Reason', width: 160, cell: (e) => <Cut text={e.reason} /> },
]

/** In a table, where what other systems chose has two lines for two values: it is long. */
const tableColumns = (project: string): Column<Event>[] => [
  ...first(project),
  {
    id: 'type',
    title: 'Type, source',
    width: 240,
    grow: true,
    cell: (e) => <Two above={<Cut text={e.type} />} below={<Cut text={e.source} />} />,
  },
  {
    id: 'id',
    title: 'ID, subject',
    width: 200,
    grow: true,
    cell: (e) => <Two above={<Cut mono text={e.id} />} below={<Cut text={e.subject} />} />,
  },
  received,
  {
    id: 'reason',
    title: 'Reason',
    width: 210,
    grow: true,
    cell: (e) => (
      <span className={styles.lines} title={e.reason}>
        {orDash(e.reason)}
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
  const list = usePages(['events', project, values], async (pageToken, signal) => {
    const since = spanStart(values.since, now())
    const page = await clients.events.listEvents(
      {
        project,
        pageSize: 100,
        pageToken,
        statuses: listed(values.status),
        type: values.type,
        source: values.source,
        id: values.id,
        dead: values.deliveries === 'dead',
        retrying: values.deliveries === 'retrying',
        ...(since === undefined ? {} : { since: timestamp(since) }),
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
            options: statusOptions('event'),
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
            options: spanOptions('1h', '24h', '7d'),
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
