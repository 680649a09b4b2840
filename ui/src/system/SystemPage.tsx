import { useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useMay, useRefusal } from '../app'
import { clients, milliseconds, useSystemStatus } from '../api'
import type { Connection, GetStatusResponse } from '../gen/signalbox/v1/system_pb'
import {
  ActionDialog,
  Ago,
  type Alert,
  AlertSlot,
  Button,
  Countdown,
  durationText,
  Elapsed,
  ErrorView,
  Facts,
  formatCount,
  Id,
  inWords,
  orDash,
  Page,
  PageHead,
  Panel,
  plural,
  Since,
  restCall,
  Skeleton,
  StatusBadge,
  Table,
  Time,
  toast,
  useLinkRefusal,
} from '../kit'
import { MaintenancePanel } from './MaintenancePanel'
import { QueuesPanel } from './QueuesPanel'
import { notIsolated, RunnersPanel } from './RunnersPanel'
import { StorePanel } from './StorePanel'
import { ReconcileRunsDialog } from './ReconcileRunsDialog'
import { pollingText } from './words'

/** The installation as one server sees it: its connection to Temporal, what else it depends on, its workers, queue mode and reconciler. */
export function SystemPage() {
  const [dialog, setDialog] = useState<'' | 'breaker' | 'reconcile'>('')
  const refusal = useRefusal()
  const offline = useLinkRefusal()
  const queries = useQueryClient()
  const may = useMay()
  const query = useSystemStatus(may('viewer', '*'))
  const unreadable = refusal('viewer', '*')
  const status = query.data
  const close = () => {
    setDialog('')
  }
  return (
    <Page title="System">
      <PageHead
        title="System"
        actions={
          <>
            <Link to="/system/restore">Restore check</Link>
            <Button refused={offline ?? refusal('admin', '*')} onClick={() => setDialog('reconcile')}>
              Reconcile runs…
            </Button>
          </>
        }
      >
        {status === undefined ? null : (
          <span>
            as seen by <Id id={status.serverId} whole />
          </span>
        )}
      </PageHead>
      {unreadable !== undefined ? (
        <Panel title="Status">Unknown: {unreadable}</Panel>
      ) : query.isError && status === undefined ? (
        <ErrorView error={query.error} what="The state of the system" onRetry={() => void query.refetch()} />
      ) : status === undefined ? (
        <Skeleton rows={16} />
      ) : (
        <>
          <AlertSlot alerts={alerts(status)} />
          <Temporal
            connection={status.connection}
            onReset={() => setDialog('breaker')}
            refused={offline ?? refusal('admin', '*')}
          />
          <MaintenancePanel refused={offline ?? refusal('admin', '*')} />
          <Dependencies status={status} />
          <StorePanel store={status.store} />
          <QueuesPanel />
          <Workers connection={status.connection} />
          <RunnersPanel status={status} />
          <Rest status={status} />
        </>
      )}
      {dialog === 'breaker' ? (
        <ActionDialog
          title="Reset the circuit breaker"
          description="The next attempt to connect to Temporal is made at once, and attempts follow the short back-off again."
          action="Reset"
          reason="none"
          size="small"
          run={() => clients.system.resetBreaker({})}
          cli={() => 'signalbox system reset-breaker'}
          rest={() => restCall('POST', '/v1/system/breaker:reset', {})}
          onDone={() => {
            toast('The breaker is closed; the server tries to connect.')
            void queries.invalidateQueries({ queryKey: ['system-status'] })
            close()
          }}
          onClose={close}
        />
      ) : null}
      {dialog === 'reconcile' ? <ReconcileRunsDialog onClose={close} /> : null}
    </Page>
  )
}

/** alerts returns what of the installation does not work. */
export function alerts(status: GetStatusResponse): Alert[] {
  const list: Alert[] = []
  const c = status.connection
  if (c !== undefined && c.state !== 'connected') {
    list.push({
      id: 'temporal',
      tone: c.state === 'down' ? 'red' : 'amber',
      title: c.title,
      since: <Since at={milliseconds(c.since)} />,
      detail: (
        <>
          {c.lastError === '' ? null : <div>{c.lastError}</div>}
          {status.queueMode?.enabled
            ? 'New runs are queued and start when the connection is back.'
            : 'New runs are refused until the connection is back. Open runs wait in Temporal; none is lost.'}
        </>
      ),
    })
  }
  for (const d of status.dependencies) {
    if (d.state !== 'up' && d.name !== 'temporal')
      list.push({
        id: d.name,
        tone: d.state === 'down' ? 'red' : 'amber',
        title: d.title === '' ? `${inWords(d.name)}: ${d.state}` : d.title,
        since: (
          <>
            since <Time at={milliseconds(d.since)} />
          </>
        ),
        detail: d.error,
      })
  }
  if (status.workersError !== '')
    list.push({ id: 'workers', tone: 'amber', title: 'The workers are not known.', detail: status.workersError })
  const open = notIsolated(status)
  if (open.length > 0)
    list.push({
      id: 'isolation',
      tone: 'amber',
      title: 'Programs are executed without isolation.',
      detail: `runner.isolation is none: they have the files and the network of ${open.join(', ')}.`,
    })
  return list
}

function Temporal({
  connection: c,
  onReset,
  refused,
}: {
  connection: Connection | undefined
  onReset: () => void
  refused: string | undefined
}) {
  if (c === undefined) return <Panel title="Temporal">Not known: the server did not report its connection.</Panel>
  const s = c.statistics
  return (
    <Panel
      title="Temporal"
      actions={
        <Button
          refused={
            refused ??
            (c.breaker?.state === 'closed' ? 'The breaker is closed: attempts follow the short back-off.' : undefined)
          }
          onClick={onReset}
        >
          Reset the breaker…
        </Button>
      }
    >
      <Facts
        facts={[
          [
            'State',
            <StatusBadge
              key="s"
              of="connection"
              status={c.state}
              detail={c.kind === '' ? '' : inWords(c.kind).toLowerCase()}
            />,
          ],
          [
            'Since',
            <span key="t">
              <Time at={milliseconds(c.since)} /> (<Elapsed from={milliseconds(c.since)} />)
            </span>,
          ],
          [
            'Address',
            <span key="a" className="mono">
              {c.address}
            </span>,
          ],
          ['Namespace', c.namespace],
          ['Last check took', durationText(c.latency)],
          ['Attempts since the start', formatCount(c.attempts)],
          [
            'Next attempt',
            c.nextAttemptTime === undefined ? (
              'none scheduled'
            ) : (
              <span key="n">
                in <Countdown at={milliseconds(c.nextAttemptTime)} />
              </span>
            ),
          ],
          [
            'Breaker',
            c.breaker === undefined ? (
              'unknown'
            ) : (
              <StatusBadge
                key="b"
                of="breaker"
                status={c.breaker.state}
                detail={c.breaker.failures === 0n ? '' : plural(c.breaker.failures, 'failure')}
              />
            ),
          ],
          ['Connected in all', durationText(s?.uptime)],
          ['Not connected in all', durationText(s?.downtime)],
          ['Outages since the start', s === undefined ? 'unknown' : formatCount(s.outages)],
          [
            'Longest outage',
            s === undefined ? 'unknown' : s.outages === 0n ? 'no outage' : durationText(s.longestOutage),
          ],
          c.lastError === ''
            ? undefined
            : [
                'Last error',
                <span key="e">
                  {c.lastError} (<Ago at={milliseconds(c.lastErrorTime)} />)
                </span>,
              ],
        ]}
      />
    </Panel>
  )
}

function Dependencies({ status }: { status: GetStatusResponse }) {
  return (
    <Panel title="Dependencies" flush>
      <Table heads={['Name', 'State', 'Since', 'Why']}>
        {status.dependencies.map((d) => (
          <tr key={d.name}>
            <td>{inWords(d.name)}</td>
            <td>
              <StatusBadge of="dependency" status={d.state} />
            </td>
            <td>
              <Time at={milliseconds(d.since)} unknown="unknown" />
            </td>
            <td>{d.error === '' ? '–' : d.title === '' ? d.error : `${d.title}: ${d.error}`}</td>
          </tr>
        ))}
      </Table>
    </Panel>
  )
}

function Workers({ connection }: { connection: Connection | undefined }) {
  const sets = connection?.workerSets ?? []
  return (
    <Panel title="Workers of this server" flush={sets.length > 0}>
      {sets.length === 0 ? (
        'This server runs no worker.'
      ) : (
        <Table heads={['Project', 'Task queues', 'Polling', 'Last poll', 'Since', 'Failures', 'Error']}>
          {sets.map((set) => (
            <tr key={set.name}>
              <td>{set.name}</td>
              <td className="mono">{set.taskQueues.join(', ')}</td>
              <td>{pollingText(set)}</td>
              <td>
                <Ago at={milliseconds(set.lastPollTime)} />
              </td>
              <td>
                <Time at={milliseconds(set.startTime)} />
              </td>
              <td>{formatCount(set.failures)}</td>
              <td>{orDash(set.error)}</td>
            </tr>
          ))}
        </Table>
      )}
    </Panel>
  )
}

function Rest({ status: { queueMode: q, reconciler: r, ...status } }: { status: GetStatusResponse }) {
  return (
    <>
      <Panel title="Queue mode">
        {q === undefined ? (
          'Not known.'
        ) : !q.enabled ? (
          'Off: while Temporal is unavailable, new runs are refused at once.'
        ) : (
          <Facts
            facts={[
              [
                'Queued runs',
                q.error === '' ? `${formatCount(q.runs)} of ${formatCount(q.maxRuns)}` : `unknown: ${q.error}`,
              ],
              ['A run waits at most', durationText(q.ttl)],
            ]}
          />
        )}
      </Panel>
      <Panel title="Reconciler">
        {r === undefined ? (
          'Another process reconciles the runs, or none does yet.'
        ) : (
          <Facts
            facts={[
              ['Last pass', <Ago key="l" at={milliseconds(r.lastTime)} unknown="none yet" />],
              ['Checked', formatCount(r.checked)],
              ['Corrections', formatCount(r.corrections)],
              ['Failed', formatCount(r.failed)],
              r.foreign === 0n ? undefined : ['Foreign, cannot be adopted', formatCount(r.foreign)],
              r.searchedUntil === undefined
                ? undefined
                : ['Ended executions searched', <Time key="s" at={milliseconds(r.searchedUntil)} />],
              r.error === '' ? undefined : ['Error', r.error],
            ]}
          />
        )}
      </Panel>
      <Panel title="This server">
        <Facts
          facts={[
            ['Version', status.version],
            ['Roles', status.roles.join(', ')],
            ['Started', <Time key="t" at={milliseconds(status.startTime)} />],
            [
              'Workers that take runs',
              `${status.workers.filter((w) => w.takesRuns).length} of ${status.workers.length}`,
            ],
            ['Contracts of the workers', [...new Set(status.workers.map((w) => w.contract))].join(', ') || 'unknown'],
            [
              'Licences',
              <Link key="i" to="/system/licences">
                of the software in it
              </Link>,
            ],
          ]}
        />
      </Panel>
    </>
  )
}
