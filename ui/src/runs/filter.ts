import { milliseconds, timestamp } from '../api'
import { all, many, one, type Search } from '../app'
import type { RunFilter as Conditions } from '../gen/signalbox/v1/run_pb'
import { command, formatFullTime, inWords, lengthUnits, shortId, statusWord, vocabularies, type Zone } from '../kit'
import { type Label, labelParameter, labelProblem, labelText, readLabel, readParameter } from '../labels'

/**
 * Which runs the list shows, and in which order. The URL holds it; this is its checked form. A time is a moment of RFC 3339; the first time of
 * a period may be a length of time before now instead, such as 24h.
 */
export type RunFilter = {
  [F in Field]: Conditions[F] extends string | boolean | string[] ? Conditions[F] : string
} & { order: Order }

type Field = Exclude<keyof Conditions, '$typeName' | '$unknown'>

type Time = 'since' | 'until' | 'endedSince' | 'endedUntil'

const times: string[] = ['since', 'until', 'endedSince', 'endedUntil'] satisfies Time[]

export type Order = 'newest' | 'oldest' | 'longest'

const orders: string[] = ['newest', 'oldest', 'longest']

export const statuses = Object.keys(vocabularies.run)
export const openStatuses = ['queued', 'running', 'waiting']
export const stuckCodes = Object.keys(vocabularies.stuck)
export const waitingKinds = ['event', 'timer', 'retry', 'quota', 'child', 'paused']
export const triggers = ['api', 'event', 'schedule', 'replay', 'parent', 'import']

/** triggerWord prints the cause of a start. */
export const triggerWord = (trigger: string): string => (trigger === 'api' ? 'API' : inWords(trigger))

/** A parameter of the URL that cannot be used, and why. It is left out of the filter. */
export interface Invalid {
  name: string
  value: string
  why: string
}

type Refuse = (value: string, why: string) => void

/** What a part of the filter is shown with: the zone of times, and the name of its failure group. */
interface Context {
  zone: Zone
  failure: string
}

/** A condition of the filter with a value of type T. */
interface Condition<T> {
  /** The parameter of the URL, and the flag of the CLI. */
  name: string
  none: T
  /** Reads the URL. */
  read(search: Search, refuse: Refuse): T
  /** The value in the URL; undefined for none. */
  write(value: T): string | string[] | undefined
  /** The parts as they are shown, each with the value that is left without it. */
  parts(value: T, context: Context): { text: string; left: T }[]
}

const text = (
  name: string,
  shown: (value: string, context: Context) => string,
  wrong: (value: string, search: Search) => string = () => '',
): Condition<string> => ({
  name,
  none: '',
  read: (search, refuse) => {
    const value = one(search, name).trim()
    const why = value === '' ? '' : wrong(value, search)
    if (why !== '') refuse(value, why)
    return why === '' ? value : ''
  },
  write: (value) => (value === '' ? undefined : value),
  parts: (value, context) => (value === '' ? [] : [{ text: shown(value, context), left: '' }]),
})

const words = (
  name: string,
  known: string[],
  what: string,
  shown: (values: string[]) => string,
): Condition<string[]> => ({
  name,
  none: [],
  read: (search, refuse) =>
    many(search, name).filter((value, i, values) => {
      if (!known.includes(value)) refuse(value, `not ${what}`)
      return known.includes(value) && values.indexOf(value) === i
    }),
  write: (values) => (values.length === 0 ? undefined : values.join(',')),
  parts: (values) => (values.length === 0 ? [] : [{ text: shown(values), left: [] }]),
})

const truth = (name: string, shown: string): Condition<boolean> => ({
  name,
  none: false,
  read: (search, refuse) => {
    const value = one(search, name)
    if (value !== '' && value !== 'true') refuse(value, 'the only value is true')
    return value === 'true'
  },
  write: (value) => (value ? 'true' : undefined),
  parts: (value) => (value ? [{ text: shown, left: false }] : []),
})

/** periodMilliseconds reads a length of time such as 24h; undefined if it is none. */
export function periodMilliseconds(text: string): number | undefined {
  const found = /^([1-9][0-9]{0,8})([smhd])$/.exec(text)
  return found === null ? undefined : Number(found[1]) * (lengthUnits[found[2] ?? ''] ?? 0)
}

// The year first, so that the browser's more generous parser reads no other texts as a moment.
const momentPattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/

const isMoment = (text: string) => momentPattern.test(text) && Number.isFinite(Date.parse(text))

/** momentOf returns a time of the filter that is a moment; empty for a length of time. */
export const momentOf = (time: string): string => (isMoment(time) ? time : '')

const since = (name: string, what: string) =>
  text(
    name,
    (value, { zone }) =>
      isMoment(value) ? `${what} from ${formatFullTime(Date.parse(value), zone)}` : `${what} in the last ${value}`,
    (value) =>
      isMoment(value) || periodMilliseconds(value) !== undefined
        ? ''
        : 'neither a length of time such as 24h nor a moment such as 2026-01-31T12:00:00Z',
  )

const until = (name: string, what: string, begin: string) =>
  text(
    name,
    (value, { zone }) => `${what} before ${formatFullTime(Date.parse(value), zone)}`,
    (value, search) =>
      !isMoment(value)
        ? 'not a moment such as 2026-01-31T12:00:00Z'
        : Date.parse(one(search, begin)) >= Date.parse(value)
          ? `not after ${begin}`
          : '',
  )

/** Labels that the runs have, all of them, each as key=value. */
const labels: Condition<string[]> = {
  name: 'label',
  none: [],
  read: (search, refuse) => {
    const labels = new Map<string, string>()
    for (const text of all(search, 'label')) {
      const label = readParameter(text)
      const problem = label === undefined ? 'not a label such as order:4711' : labelProblem(label)
      if (label === undefined || problem !== '') refuse(text, problem)
      else if ((labels.get(label.key) ?? label.value) !== label.value)
        refuse(text, `a run has one value for ${label.key}`)
      else labels.set(label.key, label.value)
    }
    return [...labels].map(([key, value]) => labelText({ key, value }))
  },
  write: (labels) =>
    labels.length === 0
      ? undefined
      : labels.map((label) => labelParameter(readLabel(label) ?? { key: label, value: '' })),
  parts: (labels) =>
    labels.map((label) => ({ text: `Label: ${label}`, left: labels.filter((other) => other !== label) })),
}

/** Each condition of the API, in the order of the URL and of the chips. */
const table: { [F in Field]: Condition<RunFilter[F]> } = {
  statuses: words(
    'status',
    statuses,
    'a status',
    (values) => `Status: ${values.map((s) => statusWord('run', s).word).join(', ')}`,
  ),
  stuck: words('stuck', ['any', ...stuckCodes], 'a code of stuck runs', (values) =>
    values.includes('any') ? 'Stuck' : `Stuck: ${values.map((c) => statusWord('stuck', c).word).join(', ')}`,
  ),
  cause: text(
    'cause',
    (cause) => `Cause: ${inWords(cause.toLowerCase())}`,
    (cause) => (/^[A-Z_]+$/.test(cause) ? '' : 'not a cause'),
  ),
  waiting: text(
    'waiting',
    (kind) => `Waits for: ${kind}`,
    (kind) => (waitingKinds.includes(kind) ? '' : 'nothing that runs wait for'),
  ),
  retrying: text('retrying', (task) => (task === 'any' ? 'Retrying' : `Retrying: ${task}`)),
  workflow: text('workflow', (name) => `Workflow: ${name}`),
  version: text(
    'version',
    (version) => `Version: ${version}`,
    (_, search) => (one(search, 'workflow') === '' ? 'a version needs a workflow' : ''),
  ),
  trigger: text(
    'trigger',
    (trigger) => `Trigger: ${triggerWord(trigger)}`,
    (trigger) => (triggers.includes(trigger) ? '' : 'not a trigger'),
  ),
  text: text('text', (part) => `ID begins or ends with: ${part}`),
  words: text('words', (words) => `Words: ${words}`),
  errorText: text('error-text', (words) => `Error with: ${words}`),
  failedTask: text('task', (task) => `Failed at: ${task}`),
  failureGroup: text('failure-group', (_, { failure }) => `Failure: ${failure}`),
  parentRunId: text('parent', (id) => `Started by run ${shortId(id)}`),
  replayOf: text('replay-of', (id) => `Replays of ${shortId(id)}`),
  batchId: text('batch', (id) => `Of batch ${shortId(id)}`),
  startedByBatchId: text('started-by-batch', (id) => `Started by batch ${shortId(id)}`),
  labels,
  notReplayed: truth('not-replayed', 'Without a replay'),
  since: since('since', 'Queued'),
  until: until('until', 'Queued', 'since'),
  errorType: text('error', (type) => `Error: ${type}`),
  endedSince: since('ended-since', 'Ended'),
  endedUntil: until('ended-until', 'Ended', 'ended-since'),
}

const fields = Object.keys(table) as Field[]

/** each returns an object with a value for each condition. */
const each = <T>(value: (field: Field, condition: Condition<unknown>) => T) =>
  Object.fromEntries(fields.map((field) => [field, value(field, table[field])])) as Record<Field, T>

export const noFilter = { ...each((_, { none }) => none), order: 'newest' } as RunFilter

/** withLabel adds a label to those of a filter; it replaces one with the same key. */
export function withLabel(labels: readonly string[], label: Label): string[] {
  const at = labels.findIndex((text) => readLabel(text)?.key === label.key)
  return at < 0 ? [...labels, labelText(label)] : labels.with(at, labelText(label))
}

/** The parameters of the page that are no filter. */
const ownParameters = ['peek', 'view', 'columns']

const orderParameter = 'sort'

/** readFilter reads the filter from the URL, with what cannot be used. */
export function readFilter(search: Search): { filter: RunFilter; invalid: Invalid[] } {
  const invalid: Invalid[] = []
  const refuse = (name: string) => (value: string, why: string) => {
    invalid.push({ name, value, why })
  }
  const conditions = each((_, condition) => condition.read(search, refuse(condition.name)))
  const order = one(search, orderParameter)
  if (order !== '' && !orders.includes(order)) refuse(orderParameter)(order, 'not an order')
  const known = Object.keys(writeFilter(noFilter))
  for (const name of Object.keys(search)) {
    if (!known.includes(name) && !ownParameters.includes(name))
      refuse(name)(many(search, name).join(','), 'not a filter')
  }
  return { filter: { ...conditions, order: orders.includes(order) ? order : 'newest' } as RunFilter, invalid }
}

/** writeFilter returns the parameters of the URL for a filter; a parameter that is not needed is undefined. */
export const writeFilter = (filter: RunFilter): Search => ({
  ...Object.fromEntries(
    fields.map((field) => [table[field].name, (table[field] as Condition<unknown>).write(filter[field])]),
  ),
  [orderParameter]: filter.order === 'newest' ? undefined : filter.order,
})

/** The point in time of a time of the filter, in milliseconds since the epoch; undefined for none. */
function pointOf(time: string, now: number): number | undefined {
  const period = periodMilliseconds(time)
  return period === undefined ? (time === '' ? undefined : Date.parse(time)) : now - period
}

/** bounds returns the period of the filter in milliseconds since the epoch; `now` is the server's time. */
export const bounds = (filter: RunFilter, now: number) => ({
  since: pointOf(filter.since, now),
  until: pointOf(filter.until, now),
})

/** selection returns the filter as the API has it. */
export function selection(filter: RunFilter, now: number) {
  const given = fields.flatMap((field): [string, unknown][] => {
    if (!times.includes(field)) return [[field, filter[field]]]
    const point = pointOf(filter[field] as string, now)
    return point === undefined ? [] : [[field, timestamp(point)]]
  })
  return Object.fromEntries(given) as Omit<RunFilter, 'order' | Time> &
    Partial<Record<Time, ReturnType<typeof timestamp>>>
}

/** filterFromMessage returns the filter of a message of the API. */
export function filterFromMessage(message: Conditions | undefined): RunFilter {
  if (message === undefined) return noFilter
  return {
    ...each((field) => {
      const value = message[field]
      const point = typeof value === 'object' && '$typeName' in value ? milliseconds(value) : undefined
      return point === undefined ? (value ?? '') : new Date(point).toISOString()
    }),
    order: 'newest',
  } as RunFilter
}

/** sameFilter reports whether two filters select the same runs in the same order, however they are written. */
export const sameFilter = (a: RunFilter, b: RunFilter): boolean => normal(a) === normal(b)

const normal = (filter: RunFilter) =>
  JSON.stringify({
    ...each((field) => {
      const value = filter[field]
      if (typeof value === 'object') return value.toSorted()
      if (typeof value === 'boolean' || !times.includes(field)) return value
      return periodMilliseconds(value)?.toString() ?? Date.parse(value)
    }),
    order: filter.order,
  })

/** listRequest returns the request for the runs of a filter. */
export const listRequest = (project: string, filter: RunFilter, now: number) => ({
  project,
  filter: selection(filter, now),
  order: filter.order,
})

/** countRequest returns the request for the number of runs of a filter. */
export const countRequest = (project: string, filter: RunFilter, now: number) => ({
  project,
  filter: selection(filter, now),
})

const lengths = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400].map(
  (s) => s * 1000,
)

/** bucketLength returns a round length, in milliseconds, that divides a period into 120 parts at most. */
export function bucketLength(period: number): number {
  const least = period / 120
  const last = 86_400_000
  return lengths.find((length) => length >= least) ?? Math.ceil(least / last) * last
}

/** filterFlags returns the flags of the CLI that select the same runs. */
export const filterFlags = (filter: RunFilter): Record<string, string | boolean | string[]> =>
  Object.fromEntries(
    fields.map((field) => {
      const value = filter[field]
      return [table[field].name, Array.isArray(value) && field !== 'labels' ? value.join(',') : value]
    }),
  )

/** listCommand returns the command that prints the same list. */
export const listCommand = (project: string, filter: RunFilter): string =>
  command(['run', 'list'], { project, ...filterFlags(filter), order: filter.order === 'newest' ? '' : filter.order })

/** exportAddress returns the address at which the server sends the runs of a filter as a file. */
export function exportAddress(project: string, filter: RunFilter, format: 'csv' | 'json', now: number): string {
  const params = new URLSearchParams({ format })
  for (const [field, value] of Object.entries(selection(filter, now))) {
    const name = field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    if (Array.isArray(value)) for (const one of value) params.append(name, one)
    else if (typeof value === 'object')
      params.append(name, new Date(Number(value.seconds) * 1000 + value.nanos / 1e6).toISOString())
    else if (value !== '' && value !== false) params.append(name, String(value))
  }
  return `/v1/projects/${encodeURIComponent(project)}/runs:export?${params.toString()}`
}

/** A part of the filter as it is shown, with the change that removes it. */
export interface FilterChip {
  name: string
  text: string
  without: Partial<RunFilter>
}

/** filterChips returns the parts of a filter. Failure names its failure group, once it is known. */
export const filterChips = (filter: RunFilter, zone: Zone, failure = 'failures of one cause'): FilterChip[] =>
  fields.flatMap((field) => {
    const condition = table[field] as Condition<unknown>
    return condition.parts(filter[field], { zone, failure }).map(({ text, left }) => ({
      name: field === 'labels' ? text : condition.name,
      text,
      without: { [field]: left, ...(field === 'workflow' ? { version: '' } : {}) },
    }))
  })

/** The views that every project has, by their filter; the period is kept when a view is chosen. */
export const views: { id: string; name: string; filter: Partial<RunFilter> }[] = [
  { id: 'all', name: 'All', filter: {} },
  { id: 'running', name: 'Running', filter: { statuses: ['running'] } },
  { id: 'failed', name: 'Failed', filter: { statuses: ['failed'] } },
  { id: 'stuck', name: 'Stuck', filter: { stuck: ['any'] } },
]

const period = ({ since, until, order }: RunFilter) => ({ since, until, order })

/** viewFilter returns the filter of a view with the period and order of the present one. */
export const viewFilter = (view: (typeof views)[number], present: RunFilter): RunFilter => ({
  ...noFilter,
  ...period(present),
  ...view.filter,
})

const same = (a: RunFilter, b: RunFilter) => JSON.stringify(writeFilter(a)) === JSON.stringify(writeFilter(b))

/** currentView returns the ID of the view that has the filter; empty if there is none. */
export const currentView = (filter: RunFilter): string =>
  views.find((view) => same(viewFilter(view, filter), filter))?.id ?? ''

/** isFiltered reports whether the filter leaves any runs out. */
export const isFiltered = (filter: RunFilter): boolean => !same({ ...filter, order: 'newest' }, noFilter)
