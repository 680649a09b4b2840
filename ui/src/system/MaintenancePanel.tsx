import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { clients, maintenanceKey, milliseconds, useMaintenance } from '../api'
import {
  ActionDialog,
  Button,
  ErrorView,
  Facts,
  Panel,
  quote,
  restCall,
  Skeleton,
  StatusBadge,
  Time,
  toast,
} from '../kit'

/** Whether the platform starts new runs, and the switch. */
export function MaintenancePanel({ refused }: { refused: string | undefined }) {
  const [asking, setAsking] = useState(false)
  const queries = useQueryClient()
  const query = useMaintenance()
  const state = query.data
  const active = state?.active ?? false
  const close = () => {
    setAsking(false)
  }
  return (
    <Panel
      title="Maintenance"
      actions={
        <Button
          refused={refused ?? (state === undefined ? 'The state is not known.' : undefined)}
          onClick={() => setAsking(true)}
        >
          {active ? 'End the maintenance…' : 'Begin maintenance…'}
        </Button>
      }
    >
      {query.isError && state === undefined ? (
        <ErrorView error={query.error} what="The maintenance mode" onRetry={() => void query.refetch()} />
      ) : state === undefined ? (
        <Skeleton rows={1} />
      ) : (
        <Facts
          facts={[
            ['State', <StatusBadge key="s" of="maintenance" status={active ? 'on' : 'off'} />],
            state?.since === undefined
              ? undefined
              : [
                  active ? 'Since' : 'Off since',
                  <span key="t">
                    <Time at={milliseconds(state.since)} /> by {state.actor}
                  </span>,
                ],
            state === null || state.reason === '' ? undefined : ['Reason', state.reason],
          ]}
        />
      )}
      {asking ? (
        <ActionDialog
          title={active ? 'End the maintenance' : 'Begin maintenance'}
          description={
            active
              ? 'New runs start again. Deliveries of events, schedules and batches that waited continue within a minute.'
              : 'No new runs start, in any project and on any server. Requests for runs are refused with the reason given here; deliveries of events, schedules, queued runs and batches of replays wait. Open runs continue, and so do the runs that they start.'
          }
          action={active ? 'End the maintenance' : 'Begin maintenance'}
          danger={!active}
          reason={active ? 'optional' : 'required'}
          run={(reason) => clients.system.setMaintenance({ active: !active, reason })}
          cli={(reason) =>
            `signalbox system maintenance ${active ? 'off' : 'on'}${reason === '' ? '' : ` --reason ${quote(reason)}`}`
          }
          rest={(reason) => restCall('POST', '/v1/system/maintenance', { active: !active, reason })}
          onDone={(answer) => {
            toast(answer.maintenance?.active ? 'No new runs start.' : 'New runs start again.')
            void queries.invalidateQueries({ queryKey: maintenanceKey })
            close()
          }}
          onClose={close}
        />
      ) : null}
    </Panel>
  )
}
