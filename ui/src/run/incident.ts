import type { Timestamp } from '@bufbuild/protobuf/wkt'
import { milliseconds } from '../api'
import { plural } from '../kit'
import { labelList, labelText } from '../labels'
import type { Run, Step } from '../gen/signalbox/v1/run_pb'
import { attemptCount } from './attempts'

const time = (at: Timestamp | undefined) => {
  const ms = milliseconds(at)
  return ms === undefined ? 'unknown' : new Date(ms).toISOString()
}

const code = (text: string) => {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map((m) => m[0].length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}${longest > 0 ? ' ' : ''}${text}${longest > 0 ? ' ' : ''}${fence}`
}

const quote = (text: string) =>
  text
    .split('\n')
    .map((line) => `> ${line}`)
    .join('\n')

/** incident describes a run and what is wrong with it as Markdown, for a chat or a ticket. It has no input and no output. */
export function incident(run: Run, failed: Step | undefined, address: string): string {
  const lines = [
    `**${run.workflow}@${run.version}** run ${code(run.id)} in project ${code(run.project)}: **${run.status.replaceAll('_', ' ')}**${run.queuedReason === '' ? '' : ` (${run.queuedReason})`}${run.waitingKind === '' ? '' : ` (${run.waitingKind})`}`,
    '',
    `- Address: ${address}`,
    `- Trigger: ${run.trigger}, by ${code(run.actor)}`,
    ...(Object.keys(run.labels).length === 0
      ? []
      : [
          `- Labels: ${labelList(run.labels)
            .map((label) => code(labelText(label)))
            .join(', ')}`,
        ]),
    `- Queued: ${time(run.createTime)}`,
    `- Started: ${run.startTime === undefined ? 'not yet' : time(run.startTime)}`,
    `- Ended: ${run.endTime === undefined ? 'not yet' : time(run.endTime)}`,
    `- Steps: ${run.stepsDone} of ${run.stepsTotal} ended`,
    ...(run.temporal === undefined
      ? []
      : [`- Task queue: ${code(run.temporal.taskQueue)}, Temporal workflow ${code(run.temporal.workflowId)}`]),
  ]
  if (run.stuck !== undefined)
    lines.push(
      '',
      `Stuck since ${time(run.stuck.since)}: ${code(run.stuck.code)}`,
      quote(run.stuck.detail),
      '',
      `What to do: ${run.stuck.advice}`,
    )
  if (run.error !== undefined) {
    lines.push(
      '',
      `Error ${code(run.error.type)}, status ${run.error.status}`,
      quote([run.error.title, run.error.detail].filter(Boolean).join('\n')),
    )
    if (failed !== undefined)
      lines.push(
        '',
        `Step ${failed.number} ${code(failed.task)} at ${code(failed.path)}, ${plural(attemptCount(failed), 'attempt')}`,
      )
  }
  return `${lines.join('\n')}\n`
}
