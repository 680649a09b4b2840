import { Link } from '@tanstack/react-router'
import { clients, milliseconds, usePages } from '../api'
import type { Delivery, Event } from '../gen/signalbox/v1/event_pb'
import type { Run } from '../gen/signalbox/v1/run_pb'
import { type Column, command, Countdown, CopyCommand, ListView, StateView, StatusBadge, Time } from '../kit'
import styles from './run.module.css'

interface Received {
  event: Event
  /** What the event did to the run; absent if its deliveries are not kept any more. */
  delivery: Delivery | undefined
}

const done: Record<string, string> = { start: 'started the run', wake: 'woke the run' }
const todo: Record<string, string> = { start: 'starts the run', wake: 'wakes the run' }

const columns = (project: string): Column<Received>[] => [
  {
    id: 'position',
    title: 'Event',
    width: 76,
    cell: ({ event }) => (
      <Link to="/p/$project/events/$position" params={{ project, position: String(event.position) }}>
        {String(event.position)}
      </Link>
    ),
  },
  { id: 'received', title: 'Received', width: 92, cell: ({ event }) => <Time at={milliseconds(event.receiveTime)} /> },
  {
    id: 'type',
    title: 'Type',
    width: 200,
    grow: true,
    cell: ({ event }) => <span title={event.type}>{event.type}</span>,
  },
  {
    id: 'source',
    title: 'Source',
    width: 130,
    grow: true,
    cell: ({ event }) => <span title={event.source}>{event.source}</span>,
  },
  {
    id: 'id',
    title: 'ID',
    width: 130,
    grow: true,
    cell: ({ event }) => (
      <span className="mono" title={event.id}>
        {event.id}
      </span>
    ),
  },
  {
    id: 'status',
    title: 'Delivery',
    width: 96,
    cell: ({ delivery }) =>
      delivery === undefined ? 'unknown' : <StatusBadge of="delivery" status={delivery.status} />,
  },
  {
    id: 'what',
    title: 'What it did',
    width: 130,
    cell: ({ delivery }) =>
      delivery === undefined ? '–' : ((delivery.status === 'done' ? done : todo)[delivery.kind] ?? delivery.kind),
  },
  { id: 'attempts', title: 'Attempts', width: 64, align: 'end', cell: ({ delivery }) => delivery?.attempts ?? '–' },
  {
    id: 'result',
    title: 'Result',
    width: 160,
    grow: true,
    cell: ({ delivery: d }) =>
      d === undefined ? (
        '–'
      ) : d.status === 'pending' && d.nextTime !== undefined ? (
        <>
          Next attempt in <Countdown at={milliseconds(d.nextTime)} />
        </>
      ) : d.reason === '' ? (
        '–'
      ) : (
        <span title={d.reason}>{d.reason}</span>
      ),
  },
]

/** The events that started the run, woke it or are to wake it, newest first. */
export function EventsTab({ run }: { run: Run }) {
  const list = usePages(['run-events', run.project, run.id], async (pageToken, signal) => {
    const page = await clients.events.listEvents(
      { project: run.project, runId: run.id, pageSize: 100, pageToken },
      { signal },
    )
    const of = (event: Event) => page.deliveries.find((d) => d.positions.includes(event.position))
    return {
      rows: page.events.map((event): Received => ({ event, delivery: of(event) })),
      nextPageToken: page.nextPageToken,
    }
  })
  return (
    <div className={styles.events}>
      <ListView
        list={list}
        what="events"
        columns={columns(run.project)}
        rowKey={({ event }) => String(event.position)}
        empty={
          <StateView kind="empty" title="No event started or woke this run.">
            {run.trigger === 'event' || run.trigger === 'schedule'
              ? 'Retention has deleted the event that started it.'
              : 'A run shows the events that start it, and those that its listen tasks receive.'}
          </StateView>
        }
      />
      <div>
        <CopyCommand cli={command(['event', 'list'], { project: run.project, run: run.id })} />
      </div>
    </div>
  )
}
