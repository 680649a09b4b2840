import { Link, useNavigate } from '@tanstack/react-router'
import { useProject } from '../app'
import { clients, milliseconds, usePages } from '../api'
import type { Batch } from '../gen/signalbox/v1/batch_pb'
import {
  type Column,
  Elapsed,
  Id,
  inWords,
  ListView,
  Page,
  PageHead,
  shortId,
  StateView,
  StatusBadge,
  Time,
} from '../kit'
import { shownStatus } from './outcomes'
import { Progress } from './Progress'

const columns = (project: string): Column<Batch>[] => [
  { id: 'status', title: 'Status', width: 104, cell: (b) => <StatusBadge of="batch" status={shownStatus(b)} /> },
  { id: 'action', title: 'Action', width: 80, cell: (b) => inWords(b.action) },
  {
    id: 'id',
    title: 'Batch',
    width: 130,
    cell: (b) => (
      <Id id={b.id}>
        <Link to="/p/$project/batches/$id" params={{ project, id: b.id }}>
          {shortId(b.id)}
        </Link>
      </Id>
    ),
  },
  { id: 'progress', title: 'Progress', width: 220, grow: true, cell: (b) => <Progress batch={b} /> },
  { id: 'reason', title: 'Reason', width: 140, grow: true, cell: (b) => <span title={b.reason}>{b.reason}</span> },
  { id: 'actor', title: 'Actor', width: 90, cell: (b) => b.actor },
  { id: 'created', title: 'Started', width: 80, cell: (b) => <Time at={milliseconds(b.createTime)} /> },
  {
    id: 'took',
    title: 'Duration',
    width: 76,
    align: 'end',
    cell: (b) => <Elapsed from={milliseconds(b.createTime)} to={milliseconds(b.endTime)} />,
  },
]

/** The batches of a project: one action on many runs. */
export function BatchesPage() {
  const project = useProject()
  const navigate = useNavigate()
  const list = usePages(
    ['batches', project],
    async (pageToken, signal) => {
      const page = await clients.batches.listBatches({ project, pageSize: 100, pageToken }, { signal })
      return { rows: page.batches, nextPageToken: page.nextPageToken }
    },
    3000,
  )
  return (
    <Page title="Batches" fill>
      <PageHead title="Batches">One action on many runs, with the result of each.</PageHead>
      <ListView
        list={list}
        what="batches"
        columns={columns(project)}
        rowKey={(b) => b.id}
        onOpen={(b) => void navigate({ to: '/p/$project/batches/$id', params: { project, id: b.id } })}
        empty={
          <StateView kind="empty" title={`No batches in ${project} yet.`}>
            Select runs on the page{' '}
            <Link to="/p/$project/runs" params={{ project }}>
              Runs
            </Link>{' '}
            and choose an action.
          </StateView>
        }
      />
    </Page>
  )
}
