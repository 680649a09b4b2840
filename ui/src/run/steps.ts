import { hasEnded } from '../api'
import type { Run, Step } from '../gen/signalbox/v1/run_pb'
import { formatCount } from '../kit'
import { type Counts, countsText, type Node, statusGroup } from './tree'

/** groupLabel names a group of steps: iteration 1,200, attempt 2, catch. */
export const groupLabel = ({ kind, number }: Node): string =>
  kind === 'catch' ? kind : `${kind} ${formatCount(number)}`

/** countsBelow prints the counts of the steps below a closed one; `counts` has the step itself, too. */
export function countsBelow(counts: Counts, step: Step, caught: boolean): string {
  const own = caught ? 'caught' : statusGroup(step.status)
  return countsText({ ...counts, [own]: counts[own] - 1 })
}

const rank = (step: Step) => (step.status === 'failed' ? 0 : statusGroup(step.status) === 'open' ? 1 : 2)

/** ofTask returns the steps of a task, the failed first, then the open ones, each in order of entry. */
export const ofTask = (steps: Step[], pointer: string | undefined): Step[] =>
  steps.filter((step) => step.pointer === pointer).sort((a, b) => rank(a) - rank(b) || Number(a.number - b.number))

/** nextFailure returns the failed step after the selected one, or before it if `by` is -1; it goes round at both ends. */
export function nextFailure(failed: Step[], selected: bigint | undefined, by: 1 | -1): Step | undefined {
  const at = failed.findIndex((step) => step.number === selected)
  if (at < 0) return failed.at(by > 0 ? 0 : -1)
  return failed[(at + by + failed.length) % failed.length]
}

/** Why no step is shown. */
export interface NoSteps {
  kind: 'empty' | 'no-match'
  title: string
  text: string | undefined
}

/**
 * noSteps returns why no step is shown. `counted` is the number of steps that are not listed, `text` what is searched for, and `complete` says
 * that all steps were read and searched.
 */
export function noSteps(
  run: Run,
  { counted, filtered, text, complete }: { counted: bigint; filtered: boolean; text: string; complete: boolean },
): NoSteps {
  if (!complete)
    return { kind: 'empty', title: `The steps are being ${text === '' ? 'read' : 'searched'}.`, text: undefined }
  if (filtered && text === '') return { kind: 'no-match', title: 'No step matches.', text: undefined }
  if (filtered) {
    const sealed = run.redacted ? ', sealed values not' : ''
    const others = counted > 0n ? `; ${formatCount(counted)} steps are not listed, so what they contain is unknown` : ''
    return {
      kind: 'no-match',
      title: `No ${counted > 0n ? 'listed ' : ''}step contains “${text}”.`,
      text: `Names, paths, errors, inputs and outputs were searched${sealed}${others}.`,
    }
  }
  if (hasEnded(run.status)) return { kind: 'empty', title: 'The run ended before its first step.', text: undefined }
  const reason = run.queuedReason === '' ? '' : ` (${run.queuedReason})`
  const position =
    run.queuePosition === undefined ? '' : ` Its position in the queue is ${formatCount(run.queuePosition)}.`
  return { kind: 'empty', title: 'Nothing has run yet.', text: `The run is ${run.status}${reason}.${position}` }
}
