import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useProject, useRefusal } from '../app'
import { clients, milliseconds } from '../api'
import type { WebhookAttempt } from '../gen/signalbox/v1/webhook_pb'
import {
  Button,
  command,
  CopyButton,
  CopyCommand,
  durationText,
  ErrorView,
  Facts,
  formatCount,
  Id,
  Page,
  PageHead,
  Panel,
  Skeleton,
  StatusBadge,
  Table,
  Time,
  useLinkRefusal,
} from '../kit'
import { RedeliverDialog } from './dialogs'
import { NextAttempt } from './NextAttempt'
import styles from './webhooks.module.css'
import { pretty, resultOf, webhooksKey } from './words'

/** One delivery: the event, and each attempt with what the receiver answered. */
export function DeliveryPage() {
  const project = useProject()
  const { name = '', id = '' }: { name?: string; id?: string } = useParams({ strict: false })
  const [again, setAgain] = useState(false)
  const refusal = useRefusal()
  const offline = useLinkRefusal()
  const query = useQuery({
    queryKey: [...webhooksKey(project), name, 'delivery', id],
    queryFn: ({ signal }) => clients.webhooks.getWebhookDelivery({ project, id }, { signal }),
    refetchInterval: ({ state }) => (state.data?.delivery?.status === 'pending' ? 2000 : 15_000),
  })
  const delivery = query.data?.delivery
  return (
    <Page title={`Delivery ${id}`}>
      <PageHead
        title={
          <>
            <Link to="/p/$project/webhooks" params={{ project }}>
              Webhooks
            </Link>{' '}
            /{' '}
            <Link to="/p/$project/webhooks/$name" params={{ project, name }}>
              {name}
            </Link>{' '}
            / Delivery
          </>
        }
        actions={
          <>
            <CopyCommand cli={command(['webhook', 'delivery', id], { project })} />
            <Button
              refused={
                offline ??
                refusal('operator', project) ??
                (delivery === undefined ? 'The delivery is not loaded yet.' : undefined)
              }
              onClick={() => setAgain(true)}
            >
              Redeliver…
            </Button>
          </>
        }
      >
        {delivery === undefined ? null : <StatusBadge of="webhookDelivery" status={delivery.status} size="large" />}
      </PageHead>
      {query.isError && delivery === undefined ? (
        <ErrorView error={query.error} what={`Delivery ${id}`} onRetry={() => void query.refetch()} />
      ) : delivery === undefined ? (
        <Skeleton rows={12} />
      ) : (
        <>
          <Panel>
            <Facts
              facts={[
                ['Delivery', <Id key="i" id={delivery.id} whole />],
                ['Type of the event', delivery.eventType],
                [
                  'Event',
                  delivery.position === 0n ? (
                    'a test, which is not in the inbox'
                  ) : (
                    <Link
                      key="e"
                      to="/p/$project/events/$position"
                      params={{ project, position: String(delivery.position) }}
                    >
                      {String(delivery.position)}
                    </Link>
                  ),
                ],
                ['Source', delivery.eventSource],
                ['Attempts', formatCount(delivery.attempts)],
                ['Last result', resultOf(delivery)],
                delivery.status === 'pending'
                  ? ['Next attempt', <NextAttempt key="n" delivery={delivery} />]
                  : undefined,
                ['Created', <Time key="c" at={milliseconds(delivery.createTime)} />],
                ['Changed', <Time key="u" at={milliseconds(delivery.updateTime)} />],
              ]}
            />
          </Panel>
          <Panel
            title={
              delivery.attempts > delivery.history.length ? `The last ${delivery.history.length} attempts` : 'Attempts'
            }
            flush={delivery.history.length > 0}
          >
            {delivery.history.length === 0 ? 'None yet.' : <Attempts attempts={delivery.history} />}
          </Panel>
          <Panel
            title="Event"
            actions={
              delivery.event === undefined ? undefined : (
                <CopyButton text={delivery.event.json} label="Copy the event" />
              )
            }
          >
            {delivery.event === undefined ? (
              'Unknown: the server did not report it.'
            ) : (
              <pre className={styles.event} tabIndex={0}>
                {pretty(delivery.event.json)}
              </pre>
            )}
          </Panel>
        </>
      )}
      {again && delivery !== undefined ? (
        <RedeliverDialog project={project} delivery={delivery} onClose={() => setAgain(false)} />
      ) : null}
    </Page>
  )
}

/** The newest is first. */
function Attempts({ attempts }: { attempts: WebhookAttempt[] }) {
  return (
    <Table heads={['Time', 'HTTP', 'Duration', 'Result', 'Response']}>
      {attempts.toReversed().map((a, i) => {
        return (
          <tr key={attempts.length - i}>
            <td>
              <Time at={milliseconds(a.time)} />
            </td>
            <td>{a.httpStatus === 0 ? 'no response' : a.httpStatus}</td>
            <td>{durationText(a.duration)}</td>
            <td>{a.error === '' ? 'accepted' : a.error}</td>
            <td>{a.response === '' ? '–' : <code className={styles.response}>{a.response}</code>}</td>
          </tr>
        )
      })}
    </Table>
  )
}
