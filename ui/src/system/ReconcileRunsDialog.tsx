import { useQuery, useQueryClient } from '@tanstack/react-query'
import { clients } from '../api'
import { RunId } from '../app'
import { ActionDialog, ErrorView, inWords, plural, restCall, Skeleton, Table, toast } from '../kit'

/** Shows how the rows of runs differ from Temporal, and corrects them. */
export function ReconcileRunsDialog({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient()
  const plan = useQuery({
    queryKey: ['reconcile-plan'],
    queryFn: ({ signal }) => clients.system.reconcile({ dryRun: true }, { signal }),
    gcTime: 0,
  })
  const data = plan.data
  return (
    <ActionDialog
      title="Reconcile the runs"
      description="Compares the open runs with Temporal and corrects what crashes or restored backups left different. A worker does this by itself; here is what it would do now."
      action={`Apply ${plural(data?.total ?? 0n, 'correction')}`}
      reason="none"
      size="wide"
      refused={
        data === undefined
          ? 'The plan is not known yet.'
          : data.total === 0n
            ? 'There is nothing to correct.'
            : undefined
      }
      run={() => clients.system.reconcile({ dryRun: false })}
      cli={() => 'signalbox system reconcile'}
      rest={() => restCall('POST', '/v1/system/runs:reconcile', { dryRun: false })}
      onDone={(answer) => {
        toast(
          answer.failed === 0n
            ? `Applied ${plural(answer.total, 'correction')}.`
            : `${plural(answer.failed, 'correction')} failed.`,
          answer.failed === 0n ? 'normal' : 'error',
        )
        void queries.invalidateQueries()
        onClose()
      }}
      onClose={onClose}
    >
      {plan.isError ? (
        <ErrorView error={plan.error} what="The plan" onRetry={() => void plan.refetch()} />
      ) : data === undefined ? (
        <Skeleton rows={4} />
      ) : (
        <>
          <p>
            Checked {plural(data.checked, 'run')}, {String(data.open)} open.{' '}
            {data.total === 0n ? 'There is nothing to correct.' : ''}
          </p>
          {data.withheld > 0n ? (
            <p>
              {plural(data.withheld, 'correction')} withheld: {data.withheldBecause}
            </p>
          ) : null}
          {data.foreign.map((f) => (
            <p key={`${f.project} ${f.workflow} ${f.version} ${f.reason}`}>
              Foreign, not a correction: {plural(f.count, 'run')}
              {f.project === '' ? '' : ` of ${f.workflow}@${f.version} in project ${f.project}`} in Temporal without a
              row, {String(f.open)} open: {f.reason}
            </p>
          ))}
          {data.corrections.length === 0 ? null : (
            <Table heads={['Run', 'Project', 'Correction', 'Detail']}>
              {data.corrections.map((c) => (
                <tr key={`${c.runId} ${c.kind}`}>
                  <td>
                    <RunId project={c.project} id={c.runId} />
                  </td>
                  <td>{c.project}</td>
                  <td>{inWords(c.kind)}</td>
                  <td>{c.detail}</td>
                </tr>
              ))}
            </Table>
          )}
          {data.corrections.length < Number(data.total) ? <p>The first {data.corrections.length} are shown.</p> : null}
        </>
      )}
    </ActionDialog>
  )
}
