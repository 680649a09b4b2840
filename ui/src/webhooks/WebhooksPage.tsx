import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useProject, useRefusal } from '../app'
import { clients, milliseconds, usePages } from '../api'
import type { Webhook } from '../gen/signalbox/v1/webhook_pb'
import {
  Button,
  type Column,
  formatCount,
  ListView,
  Page,
  PageHead,
  SecretDialog,
  StateView,
  StatusBadge,
  Time,
  useLinkRefusal,
} from '../kit'
import { EditDialog } from './EditDialog'
import { formats, lastResult, typeInWords, webhooksKey } from './words'

const columns = (project: string): Column<Webhook>[] => [
  { id: 'status', title: 'Status', width: 88, cell: (w) => <StatusBadge of="webhook" status={w.status} /> },
  {
    id: 'name',
    title: 'Name',
    width: 90,
    grow: true,
    cell: (w) => (
      <Link to="/p/$project/webhooks/$name" params={{ project, name: w.name }}>
        {w.name}
      </Link>
    ),
  },
  { id: 'url', title: 'Receiver', width: 170, grow: true, cell: (w) => <span title={w.url}>{w.url}</span> },
  { id: 'format', title: 'Format', width: 92, cell: (w) => formats[w.format] ?? w.format },
  {
    id: 'types',
    title: 'Events',
    width: 130,
    grow: true,
    cell: (w) => (
      <span title={w.filter?.types.join('\n')}>
        {w.filter?.types.map(typeInWords).join(', ')}
        {w.filter?.with === undefined ? '' : ', with a condition'}
      </span>
    ),
  },
  {
    id: 'result',
    title: 'Last delivery',
    width: 150,
    grow: true,
    cell: (w) => <span title={w.lastError}>{lastResult(w)}</span>,
  },
  {
    id: 'accepted',
    title: 'Last accepted',
    width: 92,
    cell: (w) => <Time plain at={milliseconds(w.lastSuccessTime)} unknown="none yet" />,
  },
  { id: 'failing', title: 'Failing since', width: 92, cell: (w) => <Time plain at={milliseconds(w.failingTime)} /> },
  { id: 'pending', title: 'Pending', width: 56, align: 'end', cell: (w) => formatCount(w.pending) },
]

/** The webhooks of a project: where its events are sent, and whether they arrive. */
export function WebhooksPage() {
  const project = useProject()
  const navigate = useNavigate()
  const [creating, setCreating] = useState(false)
  const [created, setCreated] = useState<{ name: string; secret: string }>()
  const refusal = useRefusal()
  const offline = useLinkRefusal()
  const list = usePages(webhooksKey(project), async (_, signal) => ({
    rows: (await clients.webhooks.listWebhooks({ project }, { signal })).webhooks,
    nextPageToken: '',
  }))
  const open = (name: string) => {
    void navigate({ to: '/p/$project/webhooks/$name', params: { project, name } })
  }
  const create = (
    <Button refused={offline ?? refusal('admin', project)} onClick={() => setCreating(true)}>
      Create…
    </Button>
  )
  return (
    <Page title="Webhooks" fill>
      <PageHead title="Webhooks" actions={create}>
        They send events of {project} to other systems.
      </PageHead>
      <ListView
        list={list}
        what="webhooks"
        columns={columns(project)}
        rowKey={(w) => w.name}
        onOpen={(w) => open(w.name)}
        empty={
          <StateView kind="empty" title={`No webhooks in ${project} yet.`} actions={create}>
            <code>
              signalbox webhook create audit --url https://hooks.example.com/signalbox --type &apos;io.signalbox.*&apos;
            </code>
          </StateView>
        }
      />
      {creating ? (
        <EditDialog
          project={project}
          onDone={(name, secret) => {
            setCreating(false)
            setCreated({ name, secret })
          }}
          onClose={() => setCreating(false)}
        />
      ) : null}
      {created === undefined ? null : (
        <SecretDialog
          title={`The secret of ${created.name}`}
          what="the secret"
          secret={created.secret}
          onClose={() => open(created.name)}
        />
      )}
    </Page>
  )
}
