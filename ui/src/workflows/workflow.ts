import type { GridCell, Workflow, WorkflowTimer } from '../gen/signalbox/v1/workflow_pb'
import { type Alert, durationText, formatCount, plural, statusWord } from '../kit'

/** workflowAlerts returns why no run of a workflow starts. */
export function workflowAlerts(w: Workflow): Alert[] {
  if (w.state === 'paused')
    return [
      { id: 'paused', tone: 'amber', title: 'Paused: no new run starts; open runs go on.', detail: w.pauseReason },
    ]
  if (w.latestVersion === '')
    return [{ id: 'draft', tone: 'blue', title: 'Nothing is published yet: publish the draft to run it.' }]
  return []
}

/** unpublished returns why a workflow without a version cannot be paused or stopped. */
export const unpublished = (w: Workflow): string | undefined =>
  w.latestVersion === '' ? 'Nothing is published.' : undefined

/** timerCount prints a number of a clock, which is not known while its schedule cannot be read. */
export const timerCount = (timer: WorkflowTimer, count: bigint): string =>
  timer.unknownBecause === '' ? formatCount(count) : 'unknown'

/** noNextTime says why the next time of a clock is not there. */
export const noNextTime = (w: Workflow | undefined): string =>
  w?.state === 'paused' ? 'none while the workflow is paused' : 'unknown'

/** cellText describes what a task did in a run: its status, steps, attempts and duration. */
export function cellText(cell: GridCell): string {
  const attempts = cell.attempts > 0n ? [plural(cell.attempts, 'attempt')] : []
  return [
    statusWord('step', cell.status).word,
    plural(cell.count, 'step'),
    ...attempts,
    durationText(cell.duration),
  ].join(', ')
}

/** A line of a unified diff, with what it is. */
export interface DiffLine {
  text: string
  kind: 'added' | 'removed' | 'hunk' | 'same'
}

/** diffLines returns the lines of a unified diff. The names of the two documents before the first hunk are no changes, whatever they begin with. */
export function diffLines(unified: string): DiffLine[] {
  let inside = false
  return unified.split('\n').map((text): DiffLine => {
    if (text.startsWith('@@')) {
      inside = true
      return { text, kind: 'hunk' }
    }
    const sign = inside ? text.charAt(0) : ''
    return { text, kind: sign === '+' ? 'added' : sign === '-' ? 'removed' : 'same' }
  })
}
