import { many, one, type Search } from '../app'
import type { View, ViewQuery } from '../gen/signalbox/v1/view_pb'
import { command } from '../kit'
import {
  filterFlags,
  filterFromMessage,
  type Invalid,
  isFiltered,
  momentOf,
  noFilter,
  type Order,
  periodMilliseconds,
  readFilter,
  type RunFilter,
  sameFilter,
  selection,
  writeFilter,
} from './filter'

/** The columns that a list can have, with their titles, in the order of a new list. The server has the same IDs. */
export const columnTitles: Record<string, string> = {
  status: 'Status',
  run: 'Run',
  workflow: 'Workflow',
  trigger: 'Trigger',
  actor: 'Actor',
  queued: 'Queued',
  started: 'Started',
  waited: 'Waited for start',
  duration: 'Duration',
  steps: 'Steps',
  cause: 'Cause',
  labels: 'Labels',
}

/** The columns of those who chose none. */
export const standardColumns = [
  'status',
  'run',
  'workflow',
  'trigger',
  'queued',
  'started',
  'duration',
  'steps',
  'cause',
]

/** What a card on a phone shows for those who chose nothing. */
export const standardCard = ['status', 'run', 'workflow', 'queued', 'cause', 'labels']

/** The parts of a card that share one line below the first two. */
const cardFacts = ['trigger', 'actor', 'started', 'waited', 'duration', 'steps']

/** cardLines returns what a card shows in lines below its first two. The labels have a line if the run has any. */
export function cardLines(
  columns: readonly string[],
  run: { labels: Record<string, string> },
): { facts: string[]; labels: boolean } {
  return {
    facts: columns.filter((name) => cardFacts.includes(name)),
    labels: columns.includes('labels') && Object.keys(run.labels).length > 0,
  }
}

/** readColumns returns the known columns of a list, each once, and the run with its link in any case; none if it names none. */
export function readColumns(names: readonly string[]): string[] {
  const known = names.filter((name, i) => name in columnTitles && names.indexOf(name) === i)
  return known.length === 0 || known.includes('run') ? known : ['run', ...known]
}

/** toggleColumn shows or hides a column. A shown one gets the place that it has in a new list, as far as that is possible. */
export function toggleColumn(columns: readonly string[], name: string): string[] {
  if (columns.includes(name)) return columns.filter((c) => c !== name)
  const all = Object.keys(columnTitles)
  const before = all.slice(0, all.indexOf(name)).filter((c) => columns.includes(c))
  const at = before.length === 0 ? 0 : Math.max(...before.map((c) => columns.indexOf(c))) + 1
  return [...columns.slice(0, at), name, ...columns.slice(at)]
}

/** moveColumn moves a column by one place; at the end it stays. */
export function moveColumn(columns: readonly string[], name: string, by: -1 | 1): string[] {
  const from = columns.indexOf(name)
  const to = from + by
  if (from < 0 || to < 0 || to >= columns.length) return [...columns]
  const moved = columns.filter((c) => c !== name)
  moved.splice(to, 0, name)
  return moved
}

/** shownColumns returns the first list that names any column: that of the URL, of the view, of this browser, or the standard one. */
export const shownColumns = (...lists: readonly string[][]): string[] => lists.find((list) => list.length > 0) ?? []

/**
 * chosenColumns returns where a choice of columns is kept. Those of a view are changed in the URL, where the view can take them; without a view
 * they are a preference of this browser, and `own` is that preference. What the view or the standard has anyway is not kept.
 */
export function chosenColumns(
  columns: readonly string[],
  saved: readonly string[],
  standard: readonly string[],
): { url: string | undefined; own?: string } {
  const text = columns.join(',')
  if (saved.length > 0) return { url: text === saved.join(',') ? undefined : text }
  return { url: undefined, own: text === standard.join(',') ? '' : text }
}

/** periodText writes a length of time as the URL and the CLI do: 24h, 7d. */
export function periodText(seconds: number): string {
  for (const [unit, length] of [
    ['d', 86_400],
    ['h', 3600],
    ['m', 60],
  ] as const) {
    if (seconds % length === 0 && (unit !== 'd' || seconds > length)) return `${String(seconds / length)}${unit}`
  }
  return `${String(seconds)}s`
}

const periodOf = (length: string) => {
  const period = periodMilliseconds(length)
  return period === undefined ? undefined : { seconds: BigInt(period / 1000), nanos: 0 }
}

/** viewQuery returns what a view of a filter stores. Lengths of time are stored as such. */
export function viewQuery(filter: RunFilter, columns: readonly string[]) {
  const [period, endedPeriod] = [periodOf(filter.since), periodOf(filter.endedSince)]
  return {
    filter: selection(
      {
        ...filter,
        since: momentOf(filter.since),
        endedSince: momentOf(filter.endedSince),
      },
      0,
    ),
    ...(period === undefined ? {} : { period }),
    ...(endedPeriod === undefined ? {} : { endedPeriod }),
    order: filter.order === 'newest' ? '' : filter.order,
    columns: [...columns],
  }
}

/** filterOf returns the filter of a view. */
export function filterOf(query: ViewQuery | undefined): RunFilter {
  if (query === undefined) return noFilter
  return {
    ...filterFromMessage(query.filter),
    ...(query.period === undefined ? {} : { since: periodText(Number(query.period.seconds)) }),
    ...(query.endedPeriod === undefined ? {} : { endedSince: periodText(Number(query.endedPeriod.seconds)) }),
    order: (query.order === '' ? 'newest' : query.order) as Order,
  }
}

/** What the URL of the list shows: the saved view that it names, the filter, and the columns that differ from those of the view. */
export interface Shown {
  view: View | undefined
  filter: RunFilter
  columns: string[]
  invalid: Invalid[]
  /** The URL has the view alone, which is not known yet. */
  waiting: boolean
}

/**
 * readShown reads the URL. Alone, the parameter "view" stands for the filter of the view; with parameters of a filter, these replace that
 * filter as a whole. `views` are undefined until they are known.
 */
export function readShown(search: Search, views: readonly View[] | undefined): Shown {
  const id = one(search, 'view')
  const view = views?.find((v) => v.id === id)
  const { filter, invalid } = readFilter(search)
  const bare = id !== '' && Object.keys(writeFilter(noFilter)).every((name) => one(search, name) === '')
  return {
    view,
    filter: bare && view !== undefined ? filterOf(view.query) : filter,
    columns: readColumns(many(search, 'columns')),
    invalid:
      id !== '' && view === undefined && views !== undefined
        ? [...invalid, { name: 'view', value: id, why: 'deleted, or not shared with you' }]
        : invalid,
    waiting: bare && views === undefined,
  }
}

/** changeShown returns the URL's parameters with a changed filter. What was invalid goes away; the preview closes. */
export function changeShown(before: Search, change: Partial<RunFilter>, views: readonly View[] | undefined): Search {
  const { view, filter } = readShown(before, views)
  const next = { ...filter, ...change }
  if (view === undefined) return writeFilter(next)
  if (sameFilter(next, filterOf(view.query)))
    return { ...writeFilter(noFilter), view: view.id, columns: before.columns }
  return isFiltered(next) ? { ...writeFilter(next), view: view.id, columns: before.columns } : writeFilter(next)
}

/** saveCommand returns the command that saves a view; a revision stands for the view that it replaces. */
export function saveCommand(
  project: string,
  name: string,
  filter: RunFilter,
  columns: readonly string[],
  shared: boolean,
  replaced?: View,
): string {
  return command(['view', 'save', replaced?.name ?? name], {
    project,
    ...filterFlags(filter),
    order: filter.order === 'newest' ? '' : filter.order,
    columns: columns.join(','),
    shared,
    ...(replaced === undefined
      ? {}
      : { revision: String(replaced.revision), name: name === replaced.name ? '' : name }),
  })
}
