import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { RunId, useProject, useRefusal } from '../app'
import { clients, milliseconds } from '../api'
import type { Delivery, MissedListener } from '../gen/signalbox/v1/event_pb'
import {
  ActionDialog,
  Ago,
  AlertSlot,
  Button,
  command,
  Countdown,
  ErrorView,
  Facts,
  Id,
  orDash,
  Page,
  PageHead,
  Panel,
  plural,
  restCall,
  Skeleton,
  StatusBadge,
  Table,
  Time,
  toast,
  useLinkRefusal,
} from '../kit'
import { dataText, eventAlerts, isMoving, isPosition, redeliverRefusal, redeliverText } from './event'
import styles from './events.module.css'

/** One event: its attributes and data, and what each delivery did. */
export function EventPage() {
  const project = useProject()
  const { position = '' }: { position?: string } = useParams({ strict: false })
  const [redelivering, setRedelivering] = useState(false)
  const refusal = useRefusal()
  const offline = useLinkRefusal()
  const queries = useQueryClient()
  const valid = isPosition(position)
  const query = useQuery({
    queryKey: ['event', project, position],
    queryFn: ({ signal }) => clients.events.getEvent({ project, position: BigInt(position) }, { signal }),
    enabled: valid,
    refetchInterval: ({ state: { data } }) => (isMoving(data?.event, data?.deliveries ?? []) ? 2000 : 15_000),
  })
  const event = query.data?.event
  const deliveries = query.data?.deliveries ?? []
  const missed = query.data?.missed ?? []
  return (
    <Page title={`Event ${position}`}>
      <PageHead
        title={
          <>
            <Link to="/p/$project/events" params={{ project }}>
              Events
            </Link>{' '}
            / {position}
          </>
        }
        actions={
          <Button
            refused={offline ?? refusal('operator', project) ?? redeliverRefusal(event, deliveries)}
            onClick={() => setRedelivering(true)}
          >
            Redeliver…
          </Button>
        }
      >
        {event === undefined ? null : <StatusBadge of="event" status={event.status} size="large" />}
      </PageHead>
      {!valid ? (
        <ErrorView error={new Error(`"${position}" is not a position: it is a number from 1`)} what="The event" />
      ) : query.isError && event === undefined ? (
        <ErrorView error={query.error} what={`Event ${position}`} onRetry={() => void query.refetch()} />
      ) : event === undefined ? (
        <Skeleton rows={12} />
      ) : (
        <>
          <AlertSlot alerts={eventAlerts(event, deliveries)} />
          <Panel title="Attributes">
            <Facts
              facts={[
                ['Type', event.type],
                ['Source', event.source],
                ['ID', <Id key="i" id={event.id} whole />],
                ['Subject', orDash(event.subject)],
                ['Occurred', <Time key="t" at={milliseconds(event.time)} />],
                ['Received', <Time key="r" at={milliseconds(event.receiveTime)} />],
                ['Published by', event.actor],
                ['Content type', event.dataContentType === '' ? 'application/json' : event.dataContentType],
                event.dataSchema === '' ? undefined : ['Data schema', event.dataSchema],
                event.extensions === undefined
                  ? undefined
                  : ['Extensions', <code key="x">{event.extensions.json}</code>],
              ]}
            />
          </Panel>
          <Panel title="Deliveries" flush={deliveries.length > 0}>
            {deliveries.length === 0 ? (
              'None: nothing that is published or waits matched this event.'
            ) : (
              <Deliveries project={project} deliveries={deliveries} />
            )}
          </Panel>
          {missed.length === 0 ? null : (
            <Panel
              title={`Waiting runs that have not taken it${query.data?.moreMissed === true ? ', those nearest to a match' : ''}`}
              flush
            >
              <Missed project={project} missed={missed} />
            </Panel>
          )}
          <Panel title="Data">
            {dataText(event) ?? (
              <pre className={styles.data} tabIndex={0}>
                {event.data?.json}
              </pre>
            )}
          </Panel>
        </>
      )}
      {redelivering && event !== undefined ? (
        <ActionDialog
          title={`Redeliver event ${position}`}
          description={redeliverText(deliveries)}
          action="Redeliver"
          run={(reason) => clients.events.redeliverEvent({ project, position: event.position, reason })}
          cli={(reason) => command(['event', 'redeliver', position], { project, reason })}
          rest={(reason) =>
            restCall('POST', '/v1/projects/{project}/events/{position}:redeliver', { project, position, reason })
          }
          onDone={(answer) => {
            toast(`${plural(answer.deliveries.length, 'delivery', 'deliveries')} will be tried.`)
            setRedelivering(false)
            void queries.invalidateQueries({ queryKey: ['event', project, position] })
          }}
          onClose={() => setRedelivering(false)}
        />
      ) : null}
    </Page>
  )
}

function Missed({ project, missed }: { project: string; missed: MissedListener[] }) {
  return (
    <Table heads={['Run', 'Workflow', 'Step', 'Waits since', 'Reason']}>
      {missed.map((m) => (
        <tr key={`${m.runId} ${m.step} ${m.reason}`}>
          <td>
            <RunId project={project} id={m.runId} />
          </td>
          <td>
            {m.workflow}@{m.version}
          </td>
          <td>
            {m.step === 0n ? (
              'not recorded yet'
            ) : (
              <Link
                to="/p/$project/runs/$id"
                params={{ project, id: m.runId }}
                search={{ tab: 'steps', step: String(m.step) }}
              >
                {String(m.step)} {m.task}
              </Link>
            )}
          </td>
          <td>
            <Ago at={milliseconds(m.since)} unknown="unknown" />
          </td>
          <td>
            <div className={styles.reason}>{m.reason}</div>
          </td>
        </tr>
      ))}
    </Table>
  )
}

function Deliveries({ project, deliveries }: { project: string; deliveries: Delivery[] }) {
  return (
    <Table heads={['Status', 'What', 'Workflow', 'Run', 'Attempts', 'Next', 'Result of the last attempt']}>
      {deliveries.map((d) => (
        <tr key={d.id}>
          <td>
            <StatusBadge of="delivery" status={d.status} />
          </td>
          <td>{d.kind === 'start' ? 'start a run' : 'wake a run'}</td>
          <td>{d.workflow === '' ? '–' : `${d.workflow}@${d.version}`}</td>
          <td>{d.runId === '' ? '–' : <RunId project={project} id={d.runId} />}</td>
          <td>{d.attempts}</td>
          <td>
            {d.nextTime === undefined || d.status !== 'pending' ? (
              '–'
            ) : (
              <>
                in <Countdown at={milliseconds(d.nextTime)} />
              </>
            )}
          </td>
          <td>{orDash(d.reason)}</td>
        </tr>
      ))}
    </Table>
  )
}
