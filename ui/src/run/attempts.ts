import { milliseconds } from '../api'
import type { Attempt, Step } from '../gen/signalbox/v1/run_pb'
import { durationText } from '../kit'

/** attemptCount returns the number of all attempts of a step: it keeps its latest 50, and the last one's number counts the others, too. */
export const attemptCount = (step: Step): number => step.attempts.at(-1)?.number ?? 0

/** outcome says what became of an attempt, with the time after which the receiver asked for another one. */
export function outcome(attempt: Attempt): string {
  if (attempt.outcome !== '')
    return attempt.retryAfter === undefined
      ? attempt.outcome
      : `${attempt.outcome}: retry after ${durationText(attempt.retryAfter)}`
  if (attempt.endTime === undefined) return 'in progress'
  return attempt.error === undefined ? 'completed' : 'failed'
}

/** An attempt as it is listed, with the time at which the one after it began or will begin; undefined if there is none. */
export interface AttemptRow {
  attempt: Attempt
  next: number | undefined
}

/** attemptRows returns the attempts of a step, the newest first. Only the newest one has a next attempt that has not begun. */
export const attemptRows = ({ attempts, wait }: Step): AttemptRow[] =>
  attempts
    .map((attempt, i): AttemptRow => {
      const following = attempts[i + 1]
      if (following !== undefined) return { attempt, next: milliseconds(following.startTime) }
      const due = wait?.kind === 'retry' ? wait.dueTime : undefined
      return { attempt, next: milliseconds(attempt.nextTime ?? due) }
    })
    .reverse()
