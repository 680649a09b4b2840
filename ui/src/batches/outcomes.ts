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
