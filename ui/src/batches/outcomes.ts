import type { Batch } from '../gen/signalbox/v1/batch_pb'
import { formatCount } from '../kit'

/** failedRuns is the number of runs that a batch started and that failed. */
export const failedRuns = (b: Batch): bigint =>
  (b.outcomes?.failedSameCause ?? 0n) + (b.outcomes?.failedOtherCause ?? 0n)

/** shownStatus is the status of a batch as it is shown: one that ended with failures is not shown as a success. */
export const shownStatus = (b: Batch): string =>
  b.status === 'completed' && failedRuns(b) + b.failed > 0n ? 'failures' : b.status

const words = (parts: (readonly [bigint, string])[]): string =>
  parts
    .filter(([n]) => n > 0n)
    .map(([n, word]) => `${formatCount(n)} ${word}`)
    .join(', ')

/** progressWords says how far a batch is. */
export const progressWords = (b: Batch): string => {
  const done =
    b.outcomes === undefined ? ([b.succeeded, 'succeeded'] as const) : ([b.outcomes.started, 'started'] as const)
  return (
    words([
      done,
      [b.refused, 'refused'],
      [b.failed, b.outcomes === undefined ? 'failed' : 'not started'],
      [b.pending, 'pending'],
    ]) || '0 runs'
  )
}

/** outcomeWords says what became of the runs that a batch started; empty for a batch that starts none. */
export function outcomeWords(b: Batch): string {
  const o = b.outcomes
  return o === undefined
    ? ''
    : words([
        [o.open, 'open'],
        [o.completed, 'completed'],
        [o.failedSameCause, 'failed with the same cause'],
        [o.failedOtherCause, 'failed with another cause'],
        [o.canceled, 'canceled'],
        [o.terminated, 'terminated'],
        [o.unknown, 'unknown'],
      ])
}

/** isOpen reports whether a batch still changes. */
export const isOpen = (b: Batch | undefined): boolean => b !== undefined && b.status !== 'completed'

/** pauseRefusal returns why a batch cannot be paused: it has ended, or all its runs are started. */
export const pauseRefusal = (b: Batch | undefined): string | undefined =>
  b !== undefined && isOpen(b) && b.status !== 'started' ? undefined : 'The batch has ended.'

/** retryRefusal returns why nothing of a batch can be tried again. */
export const retryRefusal = (b: Batch | undefined): string | undefined =>
  b === undefined || b.failed + failedRuns(b) === 0n ? 'Nothing failed.' : undefined

/** A part of the bar of a batch, with its share of the width, from 0 to 1. */
export interface BarPart {
  part: 'succeeded' | 'open' | 'ended' | 'refused' | 'failed'
  share: number
}

/** barParts returns the parts of the bar of a batch. A run that is started is no success yet. */
export function barParts(b: Batch): BarPart[] {
  const o = b.outcomes
  const counts: [BarPart['part'], bigint][] = [
    ['succeeded', o === undefined ? b.succeeded : o.completed],
    ['open', o?.open ?? 0n],
    ['ended', o === undefined ? 0n : o.canceled + o.terminated + o.unknown],
    ['refused', b.refused],
    ['failed', b.failed + failedRuns(b)],
  ]
  return counts.map(([part, n]) => ({ part, share: b.total === 0n ? 0 : Number(n) / Number(b.total) }))
}
