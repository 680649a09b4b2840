import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { clients, milliseconds, usePages } from '../api'
import type { Session } from '../gen/signalbox/v1/session_pb'
import {
  ActionDialog,
  Button,
  type Column,
  command,
  Id,
  ListView,
  restCall,
  StateView,
  Time,
  toast,
  useLinkRefusal,
} from '../kit'

const columns = (onEnd: (session: Session) => void, offline: string | undefined): Column<Session>[] => [
  { id: 'token', title: 'Token', width: 160, grow: true, cell: (s) => s.tokenName },
  { id: 'id', title: 'Session ID', width: 160, cell: (s) => <Id id={s.id} /> },
  { id: 'created', title: 'Signed in', width: 110, cell: (s) => <Time at={milliseconds(s.createTime)} /> },
  {
    id: 'used',
    title: 'Last used',
    width: 110,
    cell: (s) => <Time at={milliseconds(s.lastUsedTime)} unknown="unknown" />,
  },
  {
    id: 'idle',
    title: 'Ends unused',
    width: 110,
    cell: (s) => <Time at={milliseconds(s.idleExpireTime)} unknown="unknown" />,
  },
  {
    id: 'expires',
    title: 'Ends at the latest',
    width: 130,
    cell: (s) => <Time at={milliseconds(s.expireTime)} unknown="unknown" />,
  },
  {
    id: 'end',
    title: <span className="hidden">Actions</span>,
    width: 80,
    align: 'end',
    cell: (s) => (
      <Button kind="quiet" refused={offline} onClick={() => onEnd(s)}>
        End…
      </Button>
    ),
  },
]

/** The open sessions of browsers. */
export function Sessions() {
  const [ending, setEnding] = useState<Session>()
  const offline = useLinkRefusal()
  const queries = useQueryClient()
  const list = usePages(
    ['sessions'],
    async (pageToken, signal) => {
      const page = await clients.sessions.listSessions({ pageSize: 100, pageToken }, { signal })
      return { rows: page.sessions, nextPageToken: page.nextPageToken }
    },
    15_000,
  )
  return (
    <>
      <ListView
        list={list}
        what="sessions"
        columns={columns(setEnding, offline)}
        rowKey={(s) => s.id}
        empty={<StateView kind="empty" title="No browser is signed in." />}
      />
      {ending === undefined ? null : (
        <ActionDialog
          title={`End a session of ${ending.tokenName}`}
          description="Its browser must sign in again. The token stays valid."
          action="End"
          run={(reason) => clients.sessions.revokeSession({ id: ending.id, reason })}
          cli={(reason) => command(['token', 'revoke-session', ending.id], { reason })}
          rest={(reason) => restCall('POST', '/v1/sessions/{id}:revoke', { id: ending.id, reason })}
          onDone={() => {
            toast('The session has ended.')
            setEnding(undefined)
            void queries.invalidateQueries({ queryKey: ['sessions'] })
          }}
          onClose={() => setEnding(undefined)}
        />
      )}
    </>
  )
}
