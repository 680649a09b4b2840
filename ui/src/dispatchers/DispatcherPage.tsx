import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useRefusal } from '../app'
import { clients, durationMilliseconds, milliseconds, now, useNow } from '../api'
import type { Dispatcher, RegisteredWorker } from '../gen/signalbox/v1/dispatcher_pb'
import type { WorkerProcess } from '../gen/signalbox/v1/worker_pb'
import {
  ActionDialog,
  Ago,
  AlertSlot,
  Button,
  command,
  Countdown,
  ErrorView,
  Facts,
  formatCount,
  formatDuration,
  Id,
  inWords,
  Page,
  PageHead,
  Panel,
  restCall,
  Skeleton,
  StatusBadge,
  Table,
  Time,
  toast,
  Unread,
  useLinkRefusal,
} from '../kit'
import { alerts, lagText } from './dispatcher'
import { Lease, Owner } from './lease'

/** One dispatcher: who owns it, how far it is, its workers, and how its owner changed. */
export function DispatcherPage() {
  const { project = '' }: { project?: string } = useParams({ strict: false })
  const [handing, setHanding] = useState(false)
  const refusal = useRefusal()
  const offline = useLinkRefusal()
  const queries = useQueryClient()
  const query = useQuery({
    queryKey: ['dispatcher', project],
    queryFn: async ({ signal }) => {
      const [answer, workers] = await Promise.all([
        clients.dispatchers.getDispatcher({ project }, { signal }),
        clients.workers.listWorkers({ project, pageSize: 500 }, { signal }),
      ])
      return { dispatcher: answer.dispatcher, workers: workers.workers, errors: workers.errors, at: now() }
    },
    refetchInterval: 5000,
  })
  const dispatcher = query.data?.dispatcher
  return (
    <Page title={`Dispatcher of ${project}`}>
      <PageHead
        title={<>Dispatcher of {project}</>}
        actions={
          <Button refused={offline ?? refusal('admin', project)} onClick={() => setHanding(true)}>
            Hand over…
          </Button>
        }
      >
        {dispatcher === undefined ? null : <StatusBadge of="dispatcher" status={dispatcher.state} size="large" />}
      </PageHead>
      {query.isError && query.data === undefined ? (
        <ErrorView error={query.error} what={`The dispatcher of ${project}`} onRetry={() => void query.refetch()} />
      ) : dispatcher === undefined || query.data === undefined ? (
        <Skeleton rows={14} />
      ) : (
        <>
          <AlertSlot alerts={alerts(dispatcher)} />
          <Unread errors={[...dispatcher.errors, ...query.data.errors]} />
          <Ownership dispatcher={dispatcher} at={query.data.at} />
          <Progress dispatcher={dispatcher} />
          <Workers registered={dispatcher.workers} processes={query.data.workers} at={query.data.at} />
          <History dispatcher={dispatcher} />
        </>
      )}
      {handing ? (
        <ActionDialog
          title={`Hand over the dispatcher of ${project}`}
          description="The owner finishes its deliveries and resigns; another worker takes over. Events wait meanwhile, and none is lost."
          action="Hand over"
          run={(reason) => clients.dispatchers.handOverDispatcher({ project, reason })}
          cli={(reason) => command(['dispatcher', 'handover'], { project, reason })}
          rest={(reason) => restCall('POST', '/v1/projects/{project}/dispatcher:handover', { project, reason })}
          onDone={(answer) => {
            toast(`Asked ${answer.owner?.serverId ?? 'the owner'} to hand over.`)
            setHanding(false)
            void queries.invalidateQueries({ queryKey: ['dispatcher', project] })
          }}
          onClose={() => setHanding(false)}
        />
      ) : null}
    </Page>
  )
}

function Ownership({ dispatcher: d, at }: { dispatcher: Dispatcher; at: number }) {
  return (
    <Panel title="Ownership">
      <Facts
        facts={[
          ['Task queue', d.taskQueue],
          ['Lease', <Lease key="lease" lease={d.lease} at={at} />],
          ['Owner by the lease', <Owner key="l" owner={d.lease?.owner} />],
          ['Owner by the inbox', <Owner key="i" owner={d.progress?.owner} />],
          ['Owner by the execution', <Owner key="e" owner={d.execution?.owner} />],
          ['Renewed', <Ago key="r" at={milliseconds(d.lease?.renewTime)} />],
          ['Workflow in Temporal', <Id key="w" id={d.workflowId} whole />],
          ['Execution', d.execution === undefined ? 'none open' : <Id key="x" id={d.execution.runId} />],
        ]}
      />
    </Panel>
  )
}

function Progress({ dispatcher: { progress } }: { dispatcher: Dispatcher }) {
  if (progress === undefined) return <Panel title="Progress">Not known: the inbox could not be read.</Panel>
  const since = durationMilliseconds(progress.sinceProgress)
  return (
    <Panel title="Progress">
      <Facts
        facts={[
          ['Newest event', formatCount(progress.head)],
          ['Routed up to', formatCount(progress.routed)],
          ['Pending', formatCount(progress.pending)],
          ['Lag', lagText(progress, 'none')],
          ['Work is due', progress.due ? 'yes' : 'no'],
          ['Parked', progress.parked ? 'yes: it waits for its doorbell signal' : 'no'],
          ['Last progress', since === undefined ? 'none yet' : `${formatDuration(since)} ago`],
        ]}
      />
    </Panel>
  )
}

function Workers({
  registered,
  processes,
  at,
}: {
  registered: RegisteredWorker[]
  processes: WorkerProcess[]
  at: number
}) {
  useNow()
  return (
    <Panel title="Workers" flush={registered.length > 0}>
      {registered.length === 0 ? (
        <p>No worker is registered with this dispatcher.</p>
      ) : (
        <Table heads={['State', 'Server ID', 'Build', 'Registered', 'Heartbeat', 'Missed checks']}>
          {registered.map((worker) => {
            const process = processes.find((p) => p.serverId === worker.serverId)
            const stale = durationMilliseconds(process?.staleIn)
            return (
              <tr key={worker.serverId}>
                <td>
                  <StatusBadge of="worker" status={process?.state ?? 'unknown'} />
                </td>
                <td>
                  <Id id={worker.serverId}>
                    <Link to="/workers" search={{ q: worker.serverId } as never}>
                      {worker.serverId}
                    </Link>
                  </Id>
                </td>
                <td>{worker.build}</td>
                <td>
                  <Time at={milliseconds(worker.registerTime)} />
                </td>
                <td>
                  {process === undefined ? (
                    'unknown'
                  ) : (
                    <>
                      beat <Ago at={milliseconds(process.lastBeatTime)} />
                      {stale === undefined ? null : (
                        <>
                          , stale in <Countdown at={at + stale} />
                        </>
                      )}
                    </>
                  )}
                </td>
                <td>{worker.missed}</td>
              </tr>
            )
          })}
        </Table>
      )}
    </Panel>
  )
}

function History({ dispatcher }: { dispatcher: Dispatcher }) {
  return (
    <Panel title="Changes of the owner" flush={dispatcher.owners.length > 0}>
      {dispatcher.owners.length === 0 ? (
        <p>None is recorded.</p>
      ) : (
        <Table heads={['Time', 'How', 'Owner', 'Before', 'Reason']}>
          {dispatcher.owners.map((change) => (
            <tr key={`${String(milliseconds(change.time))} ${String(change.owner?.epoch)}`}>
              <td>
                <Time at={milliseconds(change.time)} />
              </td>
              <td>{inWords(change.how)}</td>
              <td>
                <Owner owner={change.owner} />
              </td>
              <td>
                <Owner owner={change.previous} />
              </td>
              <td>{change.reason}</td>
            </tr>
          ))}
        </Table>
      )}
    </Panel>
  )
}
