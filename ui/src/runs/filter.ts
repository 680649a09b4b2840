import { timestamp } from '../api'
import { all, many, one, type Search } from '../app'
import { command, formatFullTime, inWords, shortId, statusWord, vocabularies, type Zone } from '../kit'
import { type Label, labelParameter, labelProblem, labelText, readLabel, readParameter } from '../labels'

/** Which runs the list shows, and in which order. The URL holds it; this is its checked form. */
export interface RunFilter {
  statuses: string[]
  workflow: string
  version: string
  trigger: string
  /** Beginning of a run ID or request ID. */
  text: string
  /** Codes of stuck runs; "any" for all of them. */
  problems: string[]
  /** Key of a group of failed runs, from the page of problems. */
  group: string
  /** IDs: of the run that started the runs, of the run that they replay, of the batch that selected them, of the batch that started them. */
  parent: string
  replayOf: string
  batch: string
  startedBy: string
  /** Labels that the runs have, all of them, each as key=value. */
  labels: string[]
  notReplayed: boolean
  /** Only runs of the last time, such as 24h; empty with from or to. */
  since: string
  /** Moments, RFC 3339. */
  from: string
  to: string
  /** The same for the time of the end: the length of time, or moments. */
  endedSince: string
  endedFrom: string
  endedTo: string
  /** Type of the error of the runs, or its last part, such as execution_missing. */
  error: string
  order: Order
}

export type Order = 'newest' | 'oldest' | 'longest'

const orders: string[] = ['newest', 'oldest', 'longest']

export const statuses = Object.keys(vocabularies.run)
export const openStatuses = ['queued', 'running', 'waiting']
export const problemCodes = Object.keys(vocabularies.stuck)
export const triggers = ['api', 'event', 'schedule', 'replay', 'parent', 'import']

/** triggerWord prints the cause of a start. */
export const triggerWord = (trigger: string): string => (trigger === 'api' ? 'API' : inWords(trigger))

export const noFilter: RunFilter = {
  statuses: [],
  workflow: '',
  version: '',
  trigger: '',
  text: '',
  problems: [],
  group: '',
  parent: '',
  replayOf: '',
  batch: '',
  startedBy: '',
  labels: [],
  notReplayed: false,
  since: '',
  from: '',
  to: '',
  endedSince: '',
  endedFrom: '',
  endedTo: '',
  error: '',
  order: 'newest',
}

/** A parameter of the URL that cannot be used, and why. It is left out of the filter. */
export interface Invalid {
  name: string
  value: string
  why: string
}

const units: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** periodMilliseconds reads a length of time such as 24h; undefined if it is none. */
export function periodMilliseconds(text: string): number | undefined {
  const found = /^([1-9][0-9]{0,8})([smhd])$/.exec(text)
  return found === null ? undefined : Number(found[1]) * (units[found[2] ?? ''] ?? 0)
}

// The year first, so that the browser's more generous parser reads no other texts as a moment.
const momentPattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/

const isMoment = (text: string) => momentPattern.test(text) && Number.isFinite(Date.parse(text))

/** readLabels returns the labels of the URL, each as key=value, and reports those that cannot be used. */
function readLabels(search: Search, refuse: (name: string, value: string, why: string) => void): string[] {
  const labels = new Map<string, string>()
  for (const text of all(search, 'label')) {
    const label = readParameter(text)
    const problem = label === undefined ? 'not a label such as order:4711' : labelProblem(label)
    if (label === undefined || problem !== '') refuse('label', text, problem)
    else if ((labels.get(label.key) ?? label.value) !== label.value)
      refuse('label', text, `a run has one value for ${label.key}`)
    else labels.set(label.key, label.value)
  }
  return [...labels].map(([key, value]) => labelText({ key, value }))
}

/** withLabel adds a label to those of a filter; it replaces one with the same key. */
export function withLabel(labels: readonly string[], label: Label): string[] {
  const at = labels.findIndex((text) => readLabel(text)?.key === label.key)
  return at < 0 ? [...labels, labelText(label)] : labels.with(at, labelText(label))
}

/** The parameters of the page that are no filter. */
const ownParameters = ['peek', 'view', 'columns']

/** readFilter reads the filter from the URL, with what cannot be used. */
export function readFilter(search: Search): { filter: RunFilter; invalid: Invalid[] } {
  const invalid: Invalid[] = []
  const refuse = (name: string, value: string, why: string) => {
    invalid.push({ name, value, why })
  }
  const among = (name: string, known: string[], what: string) =>
    many(search, name).filter((value, i, all) => {
      if (!known.includes(value)) refuse(name, value, `not ${what}`)
      return known.includes(value) && all.indexOf(value) === i
    })
  const checked = (name: string, valid: (value: string) => boolean, why: string) => {
    const value = one(search, name)
    if (value === '' || valid(value)) return value
    refuse(name, value, why)
    return ''
  }
  const length = (name: string) =>
    checked(name, (v) => periodMilliseconds(v) !== undefined, 'not a length of time such as 24h')
  const moment = (name: string) => checked(name, isMoment, 'not a moment such as 2026-01-31T12:00:00Z')
  const filter: RunFilter = {
    statuses: among('status', statuses, 'a status'),
    workflow: one(search, 'workflow'),
    version: checked('version', () => one(search, 'workflow') !== '', 'a version needs a workflow'),
    trigger: checked('trigger', (v) => triggers.includes(v), 'not a trigger'),
    text: one(search, 'q').trim(),
    problems: among('problem', ['any', ...problemCodes], 'a code of a problem'),
    group: one(search, 'group'),
    parent: one(search, 'parent'),
    replayOf: one(search, 'replay-of'),
    batch: one(search, 'batch'),
    startedBy: one(search, 'started-by'),
    labels: readLabels(search, refuse),
    notReplayed: checked('not-replayed', (v) => v === 'true', 'the only value is true') === 'true',
    since: length('since'),
    from: moment('from'),
    to: moment('to'),
    endedSince: length('ended-since'),
    endedFrom: moment('ended-from'),
    endedTo: moment('ended-to'),
    error: one(search, 'error').trim(),
    order: (checked('sort', (v) => orders.includes(v), 'not an order') || 'newest') as Order,
  }
  for (const [since, from, to, prefix] of [
    ['since', 'from', 'to', ''],
    ['endedSince', 'endedFrom', 'endedTo', 'ended-'],
  ] as const) {
    if (filter[since] !== '' && filter[from] !== '') {
      refuse(`${prefix}since`, filter[since], `replaced by ${prefix}from`)
      filter[since] = ''
    }
    if (filter[from] !== '' && filter[to] !== '' && Date.parse(filter[from]) >= Date.parse(filter[to])) {
      refuse(`${prefix}to`, filter[to], `not after ${prefix}from`)
      filter[to] = ''
    }
  }
  const known = Object.keys(writeFilter(noFilter))
  for (const name of Object.keys(search)) {
    if (!known.includes(name) && !ownParameters.includes(name))
      refuse(name, many(search, name).join(','), 'not a filter')
  }
  return { filter, invalid }
}

/** writeFilter returns the parameters of the URL for a filter; a parameter that is not needed is undefined. */
export function writeFilter(filter: RunFilter): Search {
  const text = (value: string) => (value === '' ? undefined : value)
  return {
    status: text(filter.statuses.join(',')),
    workflow: text(filter.workflow),
    version: filter.workflow === '' ? undefined : text(filter.version),
    trigger: text(filter.trigger),
    q: text(filter.text),
    problem: text(filter.problems.join(',')),
    group: text(filter.group),
    parent: text(filter.parent),
    'replay-of': text(filter.replayOf),
    batch: text(filter.batch),
    'started-by': text(filter.startedBy),
    label:
      filter.labels.length === 0
        ? undefined
        : filter.labels.map((label) => labelParameter(readLabel(label) ?? { key: label, value: '' })),
    'not-replayed': filter.notReplayed ? 'true' : undefined,
    since: text(filter.since),
    from: text(filter.from),
    to: text(filter.to),
    'ended-since': text(filter.endedSince),
    'ended-from': text(filter.endedFrom),
    'ended-to': text(filter.endedTo),
    error: text(filter.error),
    sort: filter.order === 'newest' ? undefined : filter.order,
  }
}

/** bounds returns the period of the filter in milliseconds since the epoch; `now` is the server's time. */
export const bounds = (filter: RunFilter, now: number) => between(filter.since, filter.from, filter.to, now)

function between(
  length: string,
  from: string,
  to: string,
  now: number,
): { since: number | undefined; until: number | undefined } {
  const period = periodMilliseconds(length)
  return {
    since: period === undefined ? (from === '' ? undefined : Date.parse(from)) : now - period,
    until: to === '' ? undefined : Date.parse(to),
  }
}

const times = (filter: RunFilter, now: number) => {
  const { since, until } = bounds(filter, now)
  const ended = between(filter.endedSince, filter.endedFrom, filter.endedTo, now)
  return {
    ...(since === undefined ? {} : { since: timestamp(since) }),
    ...(until === undefined ? {} : { until: timestamp(until) }),
    ...(ended.since === undefined ? {} : { endedSince: timestamp(ended.since) }),
    ...(ended.until === undefined ? {} : { endedUntil: timestamp(ended.until) }),
  }
}

/** What lists, counts, batches, exports and views select by in the same way. */
export const selection = (filter: RunFilter, now: number) => ({
  statuses: filter.statuses,
  workflow: filter.workflow,
  version: filter.version,
  trigger: filter.trigger,
  text: filter.text,
  problems: filter.problems,
  failureGroup: filter.group,
  parentRunId: filter.parent,
  replayOf: filter.replayOf,
  batchId: filter.batch,
  startedByBatchId: filter.startedBy,
  labels: filter.labels,
  notReplayed: filter.notReplayed,
  errorType: filter.error,
  ...times(filter, now),
})

/** listRequest returns the request for the runs of a filter. */
export const listRequest = (project: string, filter: RunFilter, now: number) => ({
  project,
  order: filter.order,
  ...selection(filter, now),
})

/** countRequest returns the request for the number of runs of a filter. */
export const countRequest = (project: string, filter: RunFilter, now: number) => ({
  project,
  ...selection(filter, now),
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

/** batchFilter returns the filter that selects the same runs for a batch. */
export const batchFilter = (filter: RunFilter, now: number) => selection(filter, now)

/** filterFlags returns the flags of the CLI that select the same runs. */
export const filterFlags = (filter: RunFilter): Record<string, string | boolean | string[]> => ({
  status: filter.statuses.join(','),
  workflow: filter.workflow,
  version: filter.version,
  trigger: filter.trigger,
  text: filter.text,
  problem: filter.problems.join(','),
  'failure-group': filter.group,
  parent: filter.parent,
  'replay-of': filter.replayOf,
  batch: filter.batch,
  'started-by-batch': filter.startedBy,
  label: filter.labels,
  'not-replayed': filter.notReplayed,
  since: filter.since === '' ? filter.from : filter.since,
  until: filter.to,
  'ended-since': filter.endedSince === '' ? filter.endedFrom : filter.endedSince,
  'ended-until': filter.endedTo,
  error: filter.error,
})

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
export function filterChips(filter: RunFilter, zone: Zone, failure = 'failures of one cause'): FilterChip[] {
  const chips: (FilterChip | undefined)[] = [
    filter.statuses.length === 0
      ? undefined
      : {
          name: 'status',
          text: `Status: ${filter.statuses.map((s) => statusWord('run', s).word).join(', ')}`,
          without: { statuses: [] },
        },
    filter.problems.length === 0
      ? undefined
      : {
          name: 'problem',
          text: filter.problems.includes('any')
            ? 'With a problem'
            : `Problem: ${filter.problems.map((c) => statusWord('stuck', c).word).join(', ')}`,
          without: { problems: [] },
        },
    filter.workflow === ''
      ? undefined
      : { name: 'workflow', text: `Workflow: ${filter.workflow}`, without: { workflow: '', version: '' } },
    filter.version === ''
      ? undefined
      : { name: 'version', text: `Version: ${filter.version}`, without: { version: '' } },
    filter.trigger === ''
      ? undefined
      : { name: 'trigger', text: `Trigger: ${triggerWord(filter.trigger)}`, without: { trigger: '' } },
    filter.text === '' ? undefined : { name: 'q', text: `ID begins with: ${filter.text}`, without: { text: '' } },
    filter.group === '' ? undefined : { name: 'group', text: `Failure: ${failure}`, without: { group: '' } },
    filter.parent === ''
      ? undefined
      : { name: 'parent', text: `Started by run ${shortId(filter.parent)}`, without: { parent: '' } },
    filter.replayOf === ''
      ? undefined
      : { name: 'replay-of', text: `Replays of ${shortId(filter.replayOf)}`, without: { replayOf: '' } },
    filter.batch === ''
      ? undefined
      : { name: 'batch', text: `Of batch ${shortId(filter.batch)}`, without: { batch: '' } },
    filter.startedBy === ''
      ? undefined
      : { name: 'started-by', text: `Started by batch ${shortId(filter.startedBy)}`, without: { startedBy: '' } },
    ...filter.labels.map((label) => ({
      name: `label ${label}`,
      text: `Label: ${label}`,
      without: { labels: filter.labels.filter((other) => other !== label) },
    })),
    filter.notReplayed
      ? { name: 'not-replayed', text: 'Without a replay', without: { notReplayed: false } }
      : undefined,
    filter.since === ''
      ? undefined
      : { name: 'since', text: `Queued in the last ${filter.since}`, without: { since: '' } },
    filter.from === ''
      ? undefined
      : { name: 'from', text: `Queued from ${formatFullTime(Date.parse(filter.from), zone)}`, without: { from: '' } },
    filter.to === ''
      ? undefined
      : { name: 'to', text: `Queued before ${formatFullTime(Date.parse(filter.to), zone)}`, without: { to: '' } },
    filter.error === '' ? undefined : { name: 'error', text: `Error: ${filter.error}`, without: { error: '' } },
    filter.endedSince === ''
      ? undefined
      : { name: 'ended-since', text: `Ended in the last ${filter.endedSince}`, without: { endedSince: '' } },
    filter.endedFrom === ''
      ? undefined
      : {
          name: 'ended-from',
          text: `Ended from ${formatFullTime(Date.parse(filter.endedFrom), zone)}`,
          without: { endedFrom: '' },
        },
    filter.endedTo === ''
      ? undefined
      : {
          name: 'ended-to',
          text: `Ended before ${formatFullTime(Date.parse(filter.endedTo), zone)}`,
          without: { endedTo: '' },
        },
  ]
  return chips.filter((chip) => chip !== undefined)
}

/** The views that every project has, by their filter; the period is kept when a view is chosen. */
export const views: { id: string; name: string; filter: Partial<RunFilter> }[] = [
  { id: 'all', name: 'All', filter: {} },
  { id: 'running', name: 'Running', filter: { statuses: ['running'] } },
  { id: 'failed', name: 'Failed', filter: { statuses: ['failed'] } },
  { id: 'problems', name: 'With problem', filter: { problems: ['any'] } },
]

const period = ({ since, from, to, order }: RunFilter) => ({ since, from, to, order })

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
