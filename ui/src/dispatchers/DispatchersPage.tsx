import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { listed, useFilters, useRefusal } from '../app'
import { clients, now, usePages } from '../api'
import type { Dispatcher } from '../gen/signalbox/v1/dispatcher_pb'
import {
  Button,
  type Column,
  FilterFields,
  formatCount,
  ListView,
  Page,
  PageHead,
  StateView,
  StatusBadge,
  statusOptions,
  useLinkRefusal,
} from '../kit'
import { lagText } from './dispatcher'
import { Lease } from './lease'
import { ReconcileDialog } from './ReconcileDialog'

interface Row {
  dispatcher: Dispatcher
  at: number
}

const columns: Column<Row>[] = [
  {
    id: 'state',
    title: 'State',
    width: 108,
    cell: ({ dispatcher }) => <StatusBadge of="dispatcher" status={dispatcher.state} />,
  },
  {
    id: 'project',
    title: 'Project',
    width: 100,
    grow: true,
    cell: ({ dispatcher }) => (
      <Link to="/dispatchers/$project" params={{ project: dispatcher.project }}>
        {dispatcher.project}
      </Link>
    ),
  },
  { id: 'queue', title: 'Task queue', width: 140, grow: true, cell: ({ dispatcher }) => dispatcher.taskQueue },
  {
    id: 'owner',
    title: 'Owner',
    width: 150,
    grow: true,
    cell: ({ dispatcher }) => dispatcher.lease?.owner?.serverId ?? 'none',
  },
  {
    id: 'epoch',
    title: 'Epoch',
    width: 48,
    align: 'end',
    cell: ({ dispatcher }) => (dispatcher.lease?.owner === undefined ? '–' : String(dispatcher.lease.owner.epoch)),
  },
  { id: 'lease', title: 'Lease', width: 120, cell: ({ dispatcher, at }) => <Lease lease={dispatcher.lease} at={at} /> },
  {
    id: 'progress',
    title: 'Routed / head',
    width: 110,
    align: 'end',
    cell: ({ dispatcher: { progress } }) =>
      progress === undefined ? 'unknown' : `${formatCount(progress.routed)} / ${formatCount(progress.head)}`,
  },
  {
    id: 'pending',
    title: 'Pending',
    width: 64,
    align: 'end',
    cell: ({ dispatcher: { progress } }) => (progress === undefined ? 'unknown' : formatCount(progress.pending)),
  },
  {
    id: 'lag',
    title: 'Lag',
    width: 76,
    align: 'end',
    cell: ({ dispatcher: { progress } }) => lagText(progress, '–'),
  },
]

/** All dispatchers that the caller may see. */
export function DispatchersPage() {
  const { values, change, filtered, clear } = useFilters(['state'])
  const [reconciling, setReconciling] = useState(false)
  const navigate = useNavigate()
  const refusal = useRefusal()
  const offline = useLinkRefusal()
  const { state } = values
  const list = usePages(['dispatchers', state], async (pageToken, signal) => {
    const page = await clients.dispatchers.listDispatchers(
      { pageSize: 100, pageToken, states: listed(state) },
      { signal },
    )
    const at = now()
    return {
      rows: page.dispatchers.map((dispatcher): Row => ({ dispatcher, at })),
      nextPageToken: page.nextPageToken,
      errors: page.dispatchers.flatMap((d) => d.errors.map((e) => `${d.project}: ${e}`)),
    }
  })
  return (
    <Page title="Dispatchers" fill>
      <PageHead
        title="Dispatchers"
        actions={
          <Button refused={offline ?? refusal('admin', '*')} onClick={() => setReconciling(true)}>
            Reconcile…
          </Button>
        }
      >
        One per project and task queue; it routes events to workflows and waiting runs.
      </PageHead>
      <FilterFields
        fields={[
          {
            name: 'state',
            label: 'State',
            options: statusOptions('dispatcher'),
          },
        ]}
        values={values}
        onChange={change}
      />
      <ListView
        list={list}
        what="dispatchers"
        columns={columns}
        rowKey={({ dispatcher }) => `${dispatcher.project} ${dispatcher.taskQueue}`}
        onOpen={({ dispatcher }) =>
          void navigate({ to: '/dispatchers/$project', params: { project: dispatcher.project } })
        }
        filtered={filtered}
        onClear={clear}
        empty={
          <StateView kind="empty" title="No dispatcher yet.">
            A worker starts the dispatcher of each project that it serves. Check on the page Workers that one is alive.
          </StateView>
        }
      />
      {reconciling ? <ReconcileDialog onClose={() => setReconciling(false)} /> : null}
    </Page>
  )
}
