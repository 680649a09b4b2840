import { useQuery, useQueryClient } from '@tanstack/react-query'
import { clients } from '../api'
import type { PlanItem } from '../gen/signalbox/v1/dispatcher_pb'
import { ActionDialog, ErrorView, inWords, plural, restCall, Skeleton, Table, toast } from '../kit'
import { planRefusal, planResult } from './dispatcher'

/** Shows what a reconcile would do, and does it. */
export function ReconcileDialog({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient()
  const plan = useQuery({
    queryKey: ['dispatcher-plan'],
    queryFn: ({ signal }) => clients.dispatchers.reconcileDispatchers({ dryRun: true }, { signal }),
    gcTime: 0,
  })
  const items = plan.data?.items ?? []
  return (
    <ActionDialog
      title="Reconcile the dispatchers"
      description="The supervisor of each worker does this every minute. Here is what it would do now."
      action={`Apply ${plural(items.length, 'action')}`}
      reason="none"
      size="wide"
      refused={planRefusal(plan.data?.items)}
      run={() => clients.dispatchers.reconcileDispatchers({ dryRun: false })}
      cli={() => 'signalbox dispatcher reconcile'}
      rest={() => restCall('POST', '/v1/dispatchers:reconcile', { dryRun: false })}
      onDone={(answer) => {
        const { text, tone } = planResult(answer.items)
        toast(text, tone)
        void queries.invalidateQueries({ queryKey: ['dispatchers'] })
        onClose()
      }}
      onClose={onClose}
    >
      {plan.isError ? (
        <ErrorView error={plan.error} what="The plan" onRetry={() => void plan.refetch()} />
      ) : plan.data === undefined ? (
        <Skeleton rows={4} />
      ) : (
        <>
          <p>
            {plural(plan.data.dispatchers, 'dispatcher')}: {String(plan.data.healthy)} healthy,{' '}
            {String(plan.data.stale)} stale, {String(plan.data.unknown)} unknown.
          </p>
          {items.length === 0 ? <p>There is nothing to do.</p> : <Plan items={items} />}
        </>
      )}
    </ActionDialog>
  )
}

function Plan({ items }: { items: PlanItem[] }) {
  return (
    <Table heads={['Action', 'Of', 'Project', 'Task queue', 'Reason']}>
      {items.map((item) => (
        <tr key={`${item.action} ${item.workflowId} ${item.runId} ${item.owner?.serverId ?? ''}`}>
          <td>{inWords(item.action)}</td>
          <td>{inWords(item.kind)}</td>
          <td>{item.project}</td>
          <td>{item.taskQueue}</td>
          <td>{item.reason}</td>
        </tr>
      ))}
    </Table>
  )
}
