import { durationMilliseconds, milliseconds, timestamp } from '../api'
import type { ScheduleSettings, WorkflowTimer } from '../gen/signalbox/v1/workflow_pb'
import { command, lengthUnits, plural, type Rest, restCall } from '../kit'

/** What a form of the settings of a schedule contains. An empty text leaves the setting to the document. */
export interface ScheduleForm {
  timeZone: string
  overlap: string
  jitter: string
  catchUp: string
  /** As the browser's field has it, in UTC. */
  pausedUntil: string
}

/** The overlaps of the API. */
export const overlaps = ['allow', 'skip', 'queue one', 'cancel the open one']

/** lengthOf reads a length of time such as 30s, 1h30m or 2d in milliseconds; undefined if it is none. */
export function lengthOf(text: string): number | undefined {
  const parts = [...text.replaceAll(' ', '').matchAll(/(\d+(?:\.\d+)?)(ms|[smhd])/g)]
  if (parts.length === 0 || parts.map(([whole]) => whole).join('') !== text.replaceAll(' ', '')) return undefined
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (lengthUnits[unit ?? ''] ?? 0), 0)
}

/** lengthText writes a length of time exactly, as lengthOf reads it. */
export function lengthText(ms: number | undefined): string {
  if (ms === undefined) return ''
  let [left, text] = [Math.round(ms), '']
  for (const unit of ['d', 'h', 'm', 's', 'ms']) {
    const length = lengthUnits[unit] ?? 1
    const count = Math.floor(left / length)
    if (count > 0) text += `${String(count)}${unit}`
    left -= count * length
  }
  return text || '0s'
}

/** momentOf reads a field for a time in UTC in milliseconds since the epoch; undefined while it is empty or not whole. */
export function momentOf(field: string): number | undefined {
  const at = Date.parse(`${field}Z`)
  return Number.isFinite(at) ? at : undefined
}

/** fieldOf writes a time as a field in UTC has it: to the minute, and with seconds where there are any. */
export const fieldOf = (ms: number | undefined): string =>
  ms === undefined ? '' : new Date(ms).toISOString().slice(0, 19).replace(/:00$/, '')

/** formOf returns the form of the settings that operators have set. */
export const formOf = (settings: ScheduleSettings | undefined): ScheduleForm => ({
  timeZone: settings?.timeZone ?? '',
  overlap: settings?.overlap ?? '',
  jitter: lengthText(durationMilliseconds(settings?.jitter)),
  catchUp: lengthText(durationMilliseconds(settings?.catchUp)),
  pausedUntil: fieldOf(milliseconds(settings?.pausedUntil)),
})

/** formProblem says which text of a form is no length of time; undefined if all are. */
export const formProblem = (form: ScheduleForm, field: 'jitter' | 'catchUp'): string | undefined =>
  form[field].trim() === '' || lengthOf(form[field]) !== undefined ? undefined : 'Write it like 30s or 2h.'

/** settingsOf returns the settings of a form for the API. */
export const settingsOf = (form: ScheduleForm) => {
  const [jitter, catchUp, until] = [lengthOf(form.jitter), lengthOf(form.catchUp), momentOf(form.pausedUntil)]
  return {
    timeZone: form.timeZone.trim(),
    overlap: form.overlap,
    ...(jitter === undefined ? {} : { jitter: timestamp(jitter) }),
    ...(catchUp === undefined ? {} : { catchUp: timestamp(catchUp) }),
    ...(until === undefined ? {} : { pausedUntil: timestamp(until) }),
  }
}

/** settingsCommands returns how to set the same without the page; "none" leaves a setting to the document. */
export const settingsCommands = (
  project: string,
  workflow: string,
  form: ScheduleForm,
  cron: boolean,
): { cli: string; rest: Rest } => {
  const until = momentOf(form.pausedUntil)
  const pausedUntil = until === undefined ? undefined : new Date(until).toISOString()
  const seconds = (text: string) => {
    const length = lengthOf(text)
    return length === undefined ? undefined : `${String(length / 1000)}s`
  }
  return {
    cli: command(['workflow', 'set', workflow], {
      project,
      'time-zone': cron ? form.timeZone.trim() || 'none' : '',
      overlap: form.overlap || 'none',
      jitter: seconds(form.jitter) ?? 'none',
      'catch-up': seconds(form.catchUp) ?? 'none',
      'pause-until': pausedUntil ?? 'none',
    }),
    rest: restCall('PUT', '/v1/projects/{project}/workflows/{workflow}:schedule', {
      project,
      workflow,
      settings: {
        timeZone: form.timeZone.trim() || undefined,
        overlap: form.overlap || undefined,
        jitter: seconds(form.jitter),
        catchUp: seconds(form.catchUp),
        pausedUntil,
      },
    }),
  }
}

/** ofOperators says which settings of a timer operators have set; empty if none. */
export function ofOperators(timer: WorkflowTimer): string {
  const set = timer.settings
  return [
    set?.timeZone ? 'time zone' : '',
    set?.overlap ? 'overlap' : '',
    set?.jitter === undefined ? '' : 'jitter',
    set?.catchUp === undefined ? '' : 'catch-up window',
    set?.pausedUntil === undefined ? '' : 'pause',
  ]
    .filter(Boolean)
    .join(', ')
}

/** The period of a backfill, as its fields have it. */
export interface Period {
  since: string
  until: string
}

/** periodProblem says why a period cannot be sent; undefined if it can. */
export function periodProblem({ since, until }: Period): string | undefined {
  const [from, to] = [momentOf(since), momentOf(until)]
  if (from === undefined || to === undefined) return 'Give both ends of the period.'
  return from < to ? undefined : 'The period ends before it begins.'
}

/** periodOf returns a period for the API. */
export const periodOf = ({ since, until }: Period) => ({
  since: timestamp(momentOf(since) ?? 0),
  until: timestamp(momentOf(until) ?? 0),
})

/** backfillCommands returns how to backfill without the page. */
export const backfillCommands = (project: string, workflow: string, period: Period): { cli: string; rest: Rest } => {
  const [since, until] = [momentOf(period.since) ?? 0, momentOf(period.until) ?? 0].map((ms) =>
    new Date(ms).toISOString(),
  )
  return {
    cli: command(['workflow', 'backfill', workflow], { project, since, until }),
    rest: restCall('POST', '/v1/projects/{project}/workflows/{workflow}:backfill', { project, workflow, since, until }),
  }
}

/** timesText counts due times. */
export const timesText = (count: number): string => plural(BigInt(count), 'due time')
