import type { StopWorkflowResponse } from '../gen/signalbox/v1/workflow_pb'
import { plural, type Rest, restCall, command, inWords } from '../kit'

/** The statuses of runs that have not ended. */
export const openStatuses = ['queued', 'running', 'waiting']

/** stopRefusal returns why a stop cannot be sent: what it touches must be known, and it needs a reason. */
export const stopRefusal = (open: bigint | undefined, reason: string): string | undefined => {
  if (open === undefined) return 'The open runs are not counted yet'
  return reason.trim() === '' ? 'Give a reason' : undefined
}

/** openRuns prints the number of open runs by status. */
export function openRuns({ open }: StopWorkflowResponse): string {
  const parts = openStatuses.flatMap((status) => {
    const count = open[status] ?? 0n
    return count === 0n ? [] : [`${count} ${status}`]
  })
  return parts.length === 0 ? 'No run is open.' : `Open runs: ${parts.join(', ')}.`
}

/** canceled says what a stop does to the open runs, one sentence for each group; `code` is the reason of the server. */
export const canceled = ({ eligible, unchanged, preview }: StopWorkflowResponse): { text: string; code: string }[] => [
  ...(eligible > 0n ? [{ text: `${plural(eligible, 'run')} will be asked to end.`, code: '' }] : []),
  ...(unchanged > 0n
    ? [{ text: `${plural(unchanged, 'run')} will not change: cancellation was requested before.`, code: '' }]
    : []),
  ...preview.map(({ count, reason }) => ({
    text: `${plural(count, 'run')} cannot be canceled: ${inWords(reason).toLowerCase()}`,
    code: reason,
  })),
]

/** stopped says what a stop has done. */
export function stopped({ batch, paused, created }: StopWorkflowResponse): string {
  const workflow = !created
    ? 'This request stopped the workflow before.'
    : paused
      ? 'The workflow is paused.'
      : 'The workflow was paused already.'
  const total = batch?.total ?? 0n
  const runs =
    total === 0n ? 'No run was open.' : `${plural(total, 'open run')} ${total === 1n ? 'is' : 'are'} being canceled.`
  return `${workflow} ${runs}`
}

/** stopCommands returns how to stop a workflow without the page; only as many runs as were shown are canceled. */
export const stopCommands = (
  project: string,
  workflow: string,
  reason: string,
  open: bigint | undefined,
): { cli: string; rest: Rest } => ({
  cli: command(['workflow', 'stop', workflow], { project, reason, expect: open === undefined ? '' : String(open) }),
  rest: restCall('POST', '/v1/projects/{project}/workflows/{workflow}:stop', {
    project,
    workflow,
    reason,
    expectedOpen: open,
  }),
})
