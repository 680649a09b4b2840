import { milliseconds } from '../api'
import type { BatchFilter } from '../gen/signalbox/v1/batch_pb'
import { formatFullTime, shortId, type Zone } from '../kit'

/** conditions writes what a batch selected its runs by. */
export function conditions(filter: BatchFilter | undefined, zone: Zone): string {
  if (filter === undefined) return 'runs given by ID'
  const [since, until] = [milliseconds(filter.since), milliseconds(filter.until)]
  const [endedSince, endedUntil] = [milliseconds(filter.endedSince), milliseconds(filter.endedUntil)]
  const parts = [
    filter.statuses.length > 0 ? `status ${filter.statuses.join(', ')}` : '',
    filter.workflow === '' ? '' : `workflow ${filter.workflow}${filter.version === '' ? '' : `@${filter.version}`}`,
    filter.trigger === '' ? '' : `trigger ${filter.trigger}`,
    filter.problems.length > 0 ? `problem ${filter.problems.join(', ')}` : '',
    filter.failureGroup === '' ? '' : `failures like ${filter.failureGroup.slice(0, 12)}`,
    ...filter.labels.map((label) => `label ${label}`),
    filter.text === '' ? '' : `ID begins with ${filter.text}`,
    filter.parentRunId === '' ? '' : `started by run ${shortId(filter.parentRunId)}`,
    filter.replayOf === '' ? '' : `replays of ${shortId(filter.replayOf)}`,
    filter.batchId === '' ? '' : `of batch ${shortId(filter.batchId)}`,
    filter.startedByBatchId === '' ? '' : `started by batch ${shortId(filter.startedByBatchId)}`,
    since === undefined ? '' : `queued from ${formatFullTime(since, zone)}`,
    until === undefined ? '' : `queued before ${formatFullTime(until, zone)}`,
    filter.errorType === '' ? '' : `error ${filter.errorType}`,
    endedSince === undefined ? '' : `ended from ${formatFullTime(endedSince, zone)}`,
    endedUntil === undefined ? '' : `ended before ${formatFullTime(endedUntil, zone)}`,
    filter.notReplayed ? 'without a replay' : '',
  ].filter(Boolean)
  return parts.length === 0 ? 'all runs' : parts.join('; ')
}
