import { Link } from '@tanstack/react-router'
import { Fragment } from 'react'
import { listed, useFilters, useProjects } from '../app'
import { clients, durationMilliseconds, milliseconds, now, usePages } from '../api'
import type { WorkerProcess } from '../gen/signalbox/v1/worker_pb'
import {
  Ago,
  type Column,
  Countdown,
  FilterFields,
  Id,
  ListView,
  Page,
  PageHead,
  StateView,
  StatusBadge,
  statusOptions,
  Time,
} from '../kit'

interface Row {
  worker: WorkerProcess
  at: number
}

function Beat({ row: { worker, at } }: { row: Row }) {
  const stale = durationMilliseconds(worker.staleIn)
  if (worker.lastBeatTime === undefined) return <>unknown</>
  return (
    <>
      beat <Ago at={milliseconds(worker.lastBeatTime)} />
      {stale === undefined || worker.state === 'stopped' ? null : stale > 0 ? (
        <>
          , stale in <Countdown at={at + stale} />
        </>
      ) : (
        ', stale'
      )}
    </>
  )
}

const columns: Column<Row>[] = [
  { id: 'state', title: 'State', width: 84, cell: ({ worker }) => <StatusBadge of="worker" status={worker.state} /> },
  {
    id: 'id',
    title: 'Server ID',
    width: 130,
    grow: true,
    cell: ({ worker }) => <Id id={worker.serverId}>{worker.serverId}</Id>,
  },
  { id: 'beat', title: 'Heartbeat', width: 190, cell: (row) => <Beat row={row} /> },
  {
    id: 'poll',
    title: 'Last poll',
    width: 92,
    cell: ({ worker }) => (
      <>
        <Ago at={milliseconds(worker.lastPollTime)} />
        {worker.busyTime === undefined ? '' : ', busy'}
      </>
    ),
  },
  {
    id: 'queues',
    title: 'Task queues',
    width: 140,
    grow: true,
    cell: ({ worker }) =>
      worker.registrations.length === 0
        ? 'none registered'
        : worker.registrations.map((r, i) => (
            <Fragment key={`${r.project} ${r.taskQueue}`}>
              {i > 0 ? ', ' : ''}
              <Link to="/dispatchers/$project" params={{ project: r.project }}>
                {r.taskQueue}
              </Link>
            </Fragment>
          )),
  },
  {
    id: 'projects',
    title: 'Projects',
    width: 90,
    grow: true,
    cell: ({ worker }) => (worker.projects.length === 0 ? 'all' : worker.projects.join(', ')),
  },
  { id: 'build', title: 'Build', width: 84, cell: ({ worker }) => (worker.build === '' ? 'unknown' : worker.build) },
  {
    id: 'contract',
    title: 'Contract',
    width: 84,
    cell: ({ worker }) => <span className="mono">{worker.contract === '' ? 'unknown' : worker.contract}</span>,
  },
  {
    id: 'start',
    title: 'Started',
    width: 76,
    cell: ({ worker }) => <Time at={milliseconds(worker.startTime)} unknown="unknown" />,
  },
]

/** The worker processes: which are alive, on which queues, since when the others are not. */
export function WorkersPage() {
  const { values, change, filtered, clear } = useFilters(['state', 'project', 'q'])
  const projects = useProjects()
  const { state, project, q: text } = values
  const list = usePages(['workers', state, project, text], async (pageToken, signal) => {
    const page = await clients.workers.listWorkers(
      { pageSize: 200, pageToken, project, states: listed(state) },
      { signal },
    )
    const at = now()
    return {
      rows: page.workers.filter((w) => w.serverId.includes(text)).map((worker): Row => ({ worker, at })),
      nextPageToken: page.nextPageToken,
      errors: page.errors,
    }
  })
  return (
    <Page title="Workers" fill>
      <PageHead title="Workers">
        Processes that execute runs. A dead one is shown as late within seconds and is evicted by its dispatchers. A
        busy one polls again when one of its tasks ends.
      </PageHead>
      <FilterFields
        fields={[
          {
            name: 'state',
            label: 'State',
            options: statusOptions('worker'),
          },
          {
            name: 'project',
            label: 'Project',
            options: (projects.data ?? []).map((p) => ({ value: p.name, label: p.name })),
          },
          { name: 'q', label: 'Server ID' },
        ]}
        values={values}
        onChange={change}
      />
      <ListView
        list={list}
        what="workers"
        columns={columns}
        rowKey={({ worker }) => worker.serverId}
        filtered={filtered}
        onClear={clear}
        empty={
          <StateView kind="empty" title="No worker is registered.">
            Runs wait until a worker serves their project. Start one: <code>signalbox server --roles worker</code>
          </StateView>
        }
      />
    </Page>
  )
}
