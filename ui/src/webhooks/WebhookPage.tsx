import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { listed, useFilters, useProject, useRefusal } from '../app'
import { clients, milliseconds, usePages } from '../api'
import type { Webhook, WebhookDelivery } from '../gen/signalbox/v1/webhook_pb'
import {
  Ago,
  type Alert,
  AlertSlot,
  Button,
  type Column,
  command,
  CopyCommand,
  ErrorView,
  Facts,
  FilterFields,
  formatCount,
  ListView,
  Menu,
  Page,
  PageHead,
  Panel,
  SecretDialog,
  Skeleton,
  StateView,
  StatusBadge,
  statusOptions,
  Time,
  toast,
  toastError,
  useLinkRefusal,
} from '../kit'
import { DeleteDialog, PauseDialog, RedeliverDialog, RotateDialog } from './dialogs'
import { EditDialog } from './EditDialog'
import { NextAttempt } from './NextAttempt'
import { formats, lastResult, resultOf, shortDelivery, testResult, typeInWords, webhooksKey } from './words'

type DialogName = '' | 'edit' | 'pause' | 'rotate' | 'delete'

/** One webhook: whether its receiver accepts events, its settings, and its deliveries. */
export function WebhookPage() {
  const project = useProject()
  const { name = '' }: { name?: string } = useParams({ strict: false })
  const navigate = useNavigate()
  const queries = useQueryClient()
  const [dialog, setDialog] = useState<DialogName>('')
  const [secret, setSecret] = useState('')
  const refusal = useRefusal()
  const offline = useLinkRefusal()
  const query = useQuery({
    queryKey: [...webhooksKey(project), name],
    queryFn: ({ signal }) => clients.webhooks.getWebhook({ project, name }, { signal }),
    refetchInterval: 5000,
  })
  const webhook = query.data?.webhook
  const renew = () => {
    void queries.invalidateQueries({ queryKey: webhooksKey(project) })
  }
  const unpause = useMutation({
    mutationFn: () => clients.webhooks.unpauseWebhook({ project, name }),
    onSuccess: renew,
    onError: toastError,
  })
  const test = useMutation({
    mutationFn: () => clients.webhooks.testWebhook({ project, name }),
    onSuccess: ({ delivery }) => {
      const { text, tone } = testResult(delivery)
      toast(text, tone)
      renew()
    },
    onError: toastError,
  })
  const loading = webhook === undefined ? 'The webhook is not loaded yet.' : undefined
  const admin = offline ?? refusal('admin', project) ?? loading
  const operator = offline ?? refusal('operator', project) ?? loading
  const close = () => {
    setDialog('')
  }
  return (
    <Page title={`Webhook ${name}`} fill>
      <PageHead
        title={
          <>
            <Link to="/p/$project/webhooks" params={{ project }}>
              Webhooks
            </Link>{' '}
            / {name}
          </>
        }
        actions={
          <>
            <CopyCommand cli={command(['webhook', 'show', name], { project })} />
            <Button
              refused={operator ?? (webhook?.status === 'paused' ? 'The webhook is paused.' : undefined)}
              busy={test.isPending}
              onClick={() => test.mutate()}
            >
              Send a test event
            </Button>
            <Button refused={admin} onClick={() => setDialog('edit')}>
              Change…
            </Button>
            {webhook?.status === 'paused' ? (
              <Button refused={admin} busy={unpause.isPending} onClick={() => unpause.mutate()}>
                Unpause
              </Button>
            ) : (
              <Button refused={admin} onClick={() => setDialog('pause')}>
                Pause…
              </Button>
            )}
            <Menu
              trigger={<Button>More</Button>}
              items={[
                {
                  label: 'Rotate the secret…',
                  refused: admin,
                  onSelect: () => setDialog('rotate'),
                },
                {
                  label: 'Delete…',
                  danger: true,
                  refused: admin,
                  onSelect: () => setDialog('delete'),
                },
              ]}
            />
          </>
        }
      >
        {webhook === undefined ? null : <StatusBadge of="webhook" status={webhook.status} size="large" />}
      </PageHead>
      {query.isError && webhook === undefined ? (
        <ErrorView error={query.error} what={`Webhook ${name}`} onRetry={() => void query.refetch()} />
      ) : webhook === undefined ? (
        <Skeleton rows={12} />
      ) : (
        <>
          <AlertSlot alerts={alertsOf(webhook)} />
          <Settings webhook={webhook} />
          <Deliveries project={project} name={name} refused={offline ?? refusal('operator', project)} />
        </>
      )}
      {dialog === 'edit' && webhook !== undefined ? (
        <EditDialog project={project} webhook={webhook} onDone={close} onClose={close} />
      ) : null}
      {dialog === 'pause' ? <PauseDialog project={project} name={name} onClose={close} /> : null}
      {dialog === 'rotate' ? (
        <RotateDialog
          project={project}
          name={name}
          onDone={(text) => {
            close()
            setSecret(text)
          }}
          onClose={close}
        />
      ) : null}
      {dialog === 'delete' ? (
        <DeleteDialog
          project={project}
          name={name}
          onDone={() => void navigate({ to: '/p/$project/webhooks', params: { project } })}
          onClose={close}
        />
      ) : null}
      {secret === '' ? null : (
        <SecretDialog
          title={`The new secret of ${name}`}
          what="the secret"
          secret={secret}
          onClose={() => setSecret('')}
        />
      )}
    </Page>
  )
}

/** alertsOf returns why nothing is delivered. */
export function alertsOf(w: Webhook): Alert[] {
  if (w.status === 'paused') {
    return [
      {
        id: 'paused',
        tone: 'amber',
        title: 'Paused: events that are accepted now are not delivered.',
        since: (
          <>
            {' '}
            since <Time at={milliseconds(w.pauseTime)} unknown="an unknown time" />
          </>
        ),
        detail: w.pauseReason === '' ? undefined : w.pauseReason,
      },
    ]
  }
  if (w.status !== 'failing') return []
  return [
    {
      id: 'failing',
      tone: 'red',
      title: 'The receiver does not accept events.',
      since: (
        <>
          {' '}
          since <Time at={milliseconds(w.failingTime)} unknown="an unknown time" />
        </>
      ),
      detail: `Result of the last attempt: ${w.lastError === '' ? 'unknown' : w.lastError}. Deliveries are attempted again by themselves; send a test event when the receiver works.`,
    },
  ]
}

function Settings({ webhook: w }: { webhook: Webhook }) {
  return (
    <Panel>
      <Facts
        facts={[
          [
            'Receiver',
            <span key="u" className="mono">
              {w.url}
            </span>,
          ],
          ['Format', formats[w.format] ?? w.format],
          [
            'Events',
            <span key="t" className="mono">
              {w.filter?.types.map(typeInWords).join(', ')}
            </span>,
          ],
          w.filter?.with === undefined ? undefined : ['Condition', <code key="w">{w.filter.with.json}</code>],
          w.status === 'failing' ? undefined : ['Last delivery', lastResult(w)],
          ['Last accepted', <Time key="s" at={milliseconds(w.lastSuccessTime)} unknown="none yet" />],
          [
            'Pending',
            <span key="p">
              {formatCount(w.pending)}
              {w.oldestPendingTime === undefined ? null : (
                <>
                  , the oldest accepted <Ago at={milliseconds(w.oldestPendingTime)} />
                </>
              )}
            </span>,
          ],
          w.previousSecretExpireTime === undefined
            ? undefined
            : ['Previous secret valid until', <Time key="x" at={milliseconds(w.previousSecretExpireTime)} />],
          [
            'Created',
            <span key="c">
              <Time at={milliseconds(w.createTime)} /> by {w.creator}
            </span>,
          ],
          [
            'Changed',
            <span key="g">
              <Time at={milliseconds(w.updateTime)} /> by {w.updater}
            </span>,
          ],
        ]}
      />
    </Panel>
  )
}

const columns = (
  project: string,
  refused: string | undefined,
  onRedeliver: (delivery: WebhookDelivery) => void,
): Column<WebhookDelivery>[] => [
  { id: 'status', title: 'Status', width: 96, cell: (d) => <StatusBadge of="webhookDelivery" status={d.status} /> },
  {
    id: 'id',
    title: 'Delivery',
    width: 128,
    cell: (d) => (
      <Link
        className="mono"
        to="/p/$project/webhooks/$name/deliveries/$id"
        params={{ project, name: d.webhook, id: d.id }}
        title={d.id}
      >
        {shortDelivery(d.id)}
      </Link>
    ),
  },
  {
    id: 'type',
    title: 'Type of the event',
    width: 160,
    grow: true,
    cell: (d) => <span title={d.eventType}>{d.eventType}</span>,
  },
  {
    id: 'event',
    title: 'Event',
    width: 56,
    align: 'end',
    cell: (d) =>
      d.position === 0n ? (
        'test'
      ) : (
        <Link to="/p/$project/events/$position" params={{ project, position: String(d.position) }}>
          {String(d.position)}
        </Link>
      ),
  },
  { id: 'attempts', title: 'Attempts', width: 60, align: 'end', cell: (d) => formatCount(d.attempts) },
  { id: 'next', title: 'Next attempt', width: 104, cell: (d) => <NextAttempt delivery={d} /> },
  { id: 'created', title: 'Created', width: 82, cell: (d) => <Time plain at={milliseconds(d.createTime)} /> },
  {
    id: 'result',
    title: 'Last result',
    width: 150,
    grow: true,
    cell: (d) => <span title={resultOf(d)}>{resultOf(d)}</span>,
  },
  {
    id: 'act',
    title: <span className="hidden">Actions</span>,
    width: 88,
    align: 'end',
    cell: (d) => (
      <Button kind="quiet" refused={refused} onClick={() => onRedeliver(d)}>
        Redeliver…
      </Button>
    ),
  },
]

function Deliveries({ project, name, refused }: { project: string; name: string; refused: string | undefined }) {
  const navigate = useNavigate()
  const { values, change, filtered, clear } = useFilters(['status'])
  const [again, setAgain] = useState<WebhookDelivery>()
  const list = usePages(
    [...webhooksKey(project), name, 'deliveries', values.status],
    async (pageToken, signal) => {
      const page = await clients.webhooks.listWebhookDeliveries(
        {
          project,
          name,
          pageSize: 100,
          pageToken,
          statuses: listed(values.status),
        },
        { signal },
      )
      return { rows: page.deliveries, nextPageToken: page.nextPageToken }
    },
    2000,
  )
  return (
    <>
      <FilterFields
        fields={[
          {
            name: 'status',
            label: 'Deliveries',
            options: statusOptions('webhookDelivery'),
          },
        ]}
        values={values}
        onChange={change}
      />
      <ListView
        list={list}
        what="deliveries"
        columns={columns(project, refused, setAgain)}
        rowKey={(d) => d.id}
        onOpen={(d) =>
          void navigate({ to: '/p/$project/webhooks/$name/deliveries/$id', params: { project, name, id: d.id } })
        }
        filtered={filtered}
        onClear={clear}
        empty={
          <StateView kind="empty" title="No deliveries yet.">
            Each event that is accepted from now on and matches becomes one. Send a test event to see whether the
            receiver accepts it.
          </StateView>
        }
      />
      {again === undefined ? null : (
        <RedeliverDialog project={project} delivery={again} onClose={() => setAgain(undefined)} />
      )}
    </>
  )
}
