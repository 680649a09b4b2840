import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useCaller, useFilters } from '../app'
import { clients, milliseconds, now, usePages } from '../api'
import type { Token } from '../gen/signalbox/v1/token_pb'
import {
  ActionDialog,
  Button,
  Chip,
  type Column,
  command,
  Facts,
  Id,
  ListView,
  Page,
  PageHead,
  Panel,
  restCall,
  StateView,
  Tabs,
  Time,
  toast,
  useLinkRefusal,
} from '../kit'
import { CreateTokenDialog } from './CreateTokenDialog'
import { Sessions } from './Sessions'
import { createRefusal, roles, state } from './token'

const columns = (onRevoke: (token: Token) => void, offline: string | undefined): Column<Token>[] => [
  {
    id: 'state',
    title: 'State',
    width: 84,
    cell: (t) => {
      const { word, tone } = state(t, now())
      return <Chip tone={tone}>{word}</Chip>
    },
  },
  { id: 'name', title: 'Name', width: 130, grow: true, cell: (t) => <span title={t.name}>{t.name}</span> },
  { id: 'id', title: 'Token ID', width: 150, cell: (t) => <Id id={t.id} /> },
  {
    id: 'roles',
    title: 'Roles',
    width: 200,
    grow: true,
    cell: (t) => <span title={roles(t.roles)}>{roles(t.roles)}</span>,
  },
  { id: 'creator', title: 'Created by', width: 110, grow: true, cell: (t) => t.creator },
  { id: 'created', title: 'Created', width: 100, cell: (t) => <Time at={milliseconds(t.createTime)} /> },
  {
    id: 'used',
    title: 'Last used',
    width: 100,
    cell: (t) => <Time at={milliseconds(t.lastUsedTime)} unknown="not used yet" />,
  },
  {
    id: 'expires',
    title: 'Expires',
    width: 100,
    cell: (t) => <Time at={milliseconds(t.expireTime)} unknown="does not" />,
  },
  {
    id: 'revoke',
    title: <span className="hidden">Actions</span>,
    width: 90,
    align: 'end',
    cell: (t) => (
      <Button
        kind="quiet"
        refused={offline ?? (t.revokeTime === undefined ? undefined : 'The token is revoked.')}
        onClick={() => onRevoke(t)}
      >
        Revoke…
      </Button>
    ),
  },
]

/** Who may do what: the caller, and the tokens. */
export function AccessPage() {
  const caller = useCaller()
  const offline = useLinkRefusal()
  const queries = useQueryClient()
  const [creating, setCreating] = useState(false)
  const [revoking, setRevoking] = useState<Token>()
  const { values, change } = useFilters(['tab'])
  const tab = values.tab === 'sessions' ? 'sessions' : 'tokens'
  const local = caller.data?.authentication === 'none'
  const refused = offline ?? createRefusal(caller.data?.roles)
  const list = usePages(
    ['tokens'],
    async (pageToken, signal) => {
      const page = await clients.tokens.listTokens({ pageSize: 100, pageToken }, { signal })
      return { rows: page.tokens, nextPageToken: page.nextPageToken }
    },
    15_000,
  )
  return (
    <Page title="Access" fill>
      <PageHead
        title="Access"
        actions={
          <Button refused={refused} onClick={() => setCreating(true)}>
            Create a token…
          </Button>
        }
      />
      <Panel title="You">
        {caller.data === undefined ? (
          caller.isError ? (
            'Not known.'
          ) : (
            '…'
          )
        ) : (
          <Facts
            facts={[
              ['Name', caller.data.actorName],
              [
                'Authenticated by',
                local
                  ? 'nothing: this server listens on this machine only, and every caller is an administrator'
                  : caller.data.authentication,
              ],
              caller.data.session === undefined
                ? undefined
                : ['Session ends', <Time key="e" at={milliseconds(caller.data.session.expireTime)} />],
              ['Roles', roles(caller.data.roles)],
            ]}
          />
        )}
      </Panel>
      <Tabs
        label="Tokens and sessions"
        tabs={[
          { id: 'tokens', label: 'Tokens' },
          { id: 'sessions', label: 'Sessions' },
        ]}
        value={tab}
        onChange={(id) => change({ tab: id === 'tokens' ? undefined : id })}
      >
        {tab === 'sessions' ? (
          <Sessions />
        ) : (
          <ListView
            list={list}
            what="tokens"
            columns={columns(setRevoking, offline)}
            rowKey={(t) => t.id}
            empty={
              <StateView kind="empty" title="No token that you may see.">
                Programs and people sign in with tokens. You see those for whose projects you are an administrator.
              </StateView>
            }
          />
        )}
      </Tabs>
      {creating ? <CreateTokenDialog onClose={() => setCreating(false)} /> : null}
      {revoking === undefined ? null : (
        <ActionDialog
          title={`Revoke the token of ${revoking.name}`}
          description="Calls and sessions with this token are refused at once. It cannot be undone."
          action="Revoke"
          danger
          run={(reason) => clients.tokens.revokeToken({ id: revoking.id, reason })}
          cli={(reason) => command(['token', 'revoke', revoking.id], { reason })}
          rest={(reason) => restCall('POST', '/v1/tokens/{id}:revoke', { id: revoking.id, reason })}
          onDone={() => {
            toast(`Revoked the token of ${revoking.name}.`)
            setRevoking(undefined)
            void queries.invalidateQueries({ queryKey: ['tokens'] })
          }}
          onClose={() => setRevoking(undefined)}
        />
      )}
    </Page>
  )
}
