import { clients, milliseconds, usePages } from '../api'
import type { Queue, QueueLine } from '../gen/signalbox/v1/system_pb'
import { Ago, Button, ErrorView, Panel, Skeleton, Table } from '../kit'
import { backlogText, pollersText, unknownLine } from './words'

/** The task queues of all projects in Temporal: who polls them, and what waits in them. */
export function QueuesPanel() {
  const list = usePages(
    ['system-queues'],
    async (pageToken, signal) => {
      const page = await clients.system.listQueues({ pageSize: 100, pageToken }, { signal })
      return { rows: page.queues, nextPageToken: page.nextPageToken }
    },
    10_000,
  )
  return (
    <Panel
      title="Task queues"
      flush={!list.failed && !list.isPending}
      actions={list.hasMore ? <Button onClick={list.more}>More</Button> : undefined}
    >
      {list.failed ? (
        <ErrorView error={list.error} what="The task queues" onRetry={list.retry} />
      ) : list.isPending ? (
        <Skeleton rows={3} />
      ) : (
        <Table heads={['Project', 'Task queue', 'Tasks', 'Pollers', 'Last poll', 'Backlog']} label="Task queues">
          {list.rows.flatMap((queue) => [
            <tr key={queue.project}>
              <td>{queue.project}</td>
              <td className="mono">{queue.name === '' ? 'unknown' : queue.name}</td>
              <td>workflow tasks</td>
              <Line line={queue.workflowTasks} queue={queue} />
            </tr>,
            <tr key={`${queue.project} activities`}>
              <td />
              <td />
              <td>activities</td>
              <Line line={queue.activities} queue={queue} />
            </tr>,
          ])}
        </Table>
      )}
    </Panel>
  )
}

function Line({ line, queue }: { line: QueueLine | undefined; queue: Queue }) {
  if (line === undefined) return <td colSpan={3}>{unknownLine(queue)}</td>
  return (
    <>
      <td>{pollersText(line)}</td>
      <td>
        <Ago at={milliseconds(line.lastPollTime)} unknown="none known" />
      </td>
      <td>{backlogText(line)}</td>
    </>
  )
}
