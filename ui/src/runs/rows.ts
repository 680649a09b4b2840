import type { Run } from '../gen/signalbox/v1/run_pb'
import type { Order } from './filter'

/** The rows of the list, merged from pages and changes. Rows never move by themselves: runs that appear wait in `arrived` until shown. */
export interface Rows {
  /** In the order of the list. */
  shown: Run[]
  /** Of the shown ones, those that no longer match the filter. */
  faded: ReadonlySet<string>
  /** Runs that match and are not shown yet, in the order of the list. */
  arrived: Run[]
  /** Whether more runs arrived than are kept: then only reading the list again shows them all. */
  overflow: boolean
  /** Token of the page after the shown rows; empty if there is none. */
  next: string
  /** Whether rows after the shown ones were dropped, so that the list cannot continue here. */
  cut: boolean
}

/** Compares two runs by their place in the list. */
export type Compare = (a: Run, b: Run) => number

/** A run that has changed, and whether it matches the filter now. */
export interface Change {
  run: Run
  matches: boolean
}

/** How many rows are kept. */
export const mostRows = 2000

export const noRows: Rows = { shown: [], faded: new Set(), arrived: [], overflow: false, next: '', cut: false }

const moment = (time: Run['createTime']): bigint =>
  time === undefined ? 0n : time.seconds * 1_000_000_000n + BigInt(time.nanos)

const sign = (difference: bigint) => (difference === 0n ? 0 : difference < 0n ? -1 : 1)

const byID: Compare = (a, b) => (a.id === b.id ? 0 : a.id < b.id ? -1 : 1)

const byCreation: Compare = (a, b) => sign(moment(a.createTime) - moment(b.createTime)) || byID(a, b)

/**
 * inOrder returns the order of the server: by time of creation, then ID; or the longest first, where an open run lasts until
 * `time`, milliseconds since the epoch, and one without a start 0.
 */
export function inOrder(order: Order, time: number): Compare {
  if (order === 'oldest') return byCreation
  if (order === 'newest') return (a, b) => -byCreation(a, b)
  const at = BigInt(Math.round(time)) * 1_000_000n
  const length = (run: Run) =>
    run.startTime === undefined ? 0n : (run.endTime === undefined ? at : moment(run.endTime)) - moment(run.startTime)
  return (a, b) => -(sign(length(a) - length(b)) || byID(a, b))
}

function limited(rows: Rows): Rows {
  if (rows.shown.length <= mostRows) return rows
  const shown = rows.shown.slice(0, mostRows)
  const ids = new Set(shown.map((run) => run.id))
  return { ...rows, shown, faded: new Set([...rows.faded].filter((id) => ids.has(id))), next: '', cut: true }
}

/** append adds the next page. Runs that are already there are replaced. */
export function append(rows: Rows, page: Run[], next: string): Rows {
  const ids = new Set(rows.shown.map((run) => run.id))
  const pending = new Set(page.map((run) => run.id))
  return limited({
    ...rows,
    shown: [...rows.shown, ...page.filter((run) => !ids.has(run.id))],
    arrived: rows.arrived.filter((run) => !pending.has(run.id)),
    next,
    cut: false,
  })
}

const newer = (before: Run, run: Run) => (run.sequence >= before.sequence ? run : before)

/** merge applies changes: shown rows change in place, runs that begin to match arrive, those that cease to match fade. */
export function merge(rows: Rows, changes: Change[], removed: string[], compare: Compare): Rows {
  const latest = new Map<string, Change>()
  for (const change of changes) {
    const before = latest.get(change.run.id)
    if (before === undefined || change.run.sequence >= before.run.sequence) latest.set(change.run.id, change)
  }
  const faded = new Set(rows.faded)
  const gone = new Set(removed)
  for (const run of rows.shown) if (gone.has(run.id)) faded.add(run.id)
  const shown = rows.shown.map((run) => {
    const change = latest.get(run.id)
    if (change === undefined) return run
    latest.delete(run.id)
    if (change.run.sequence < run.sequence) return run
    if (change.matches) faded.delete(run.id)
    else faded.add(run.id)
    return change.run
  })
  const last = rows.shown.at(-1)
  const beyond = (run: Run) => (rows.next !== '' || rows.cut) && last !== undefined && compare(run, last) > 0
  const kept = rows.arrived.flatMap((run) => {
    if (gone.has(run.id)) return []
    const change = latest.get(run.id)
    latest.delete(run.id)
    if (change === undefined) return [run]
    return change.matches ? [newer(run, change.run)] : []
  })
  const added = [...latest.values()].filter(({ run, matches }) => matches && !beyond(run)).map(({ run }) => run)
  const arrived = added.length === 0 ? kept : [...kept, ...added].sort(compare)
  return {
    ...rows,
    shown,
    faded,
    arrived: arrived.slice(0, mostRows),
    overflow: rows.overflow || arrived.length > mostRows,
  }
}

/**
 * missing returns the shown runs that a page, read again, no longer contains: those that come after `after`, the last run of the page
 * before, and not after the page's own last run.
 */
export function missing(rows: Rows, page: Run[], after: Run | undefined, next: string, compare: Compare): Run[] {
  const ids = new Set(page.map((run) => run.id))
  const last = page.at(-1)
  return rows.shown.filter(
    (run) =>
      !ids.has(run.id) &&
      !rows.faded.has(run.id) &&
      (after === undefined || compare(run, after) > 0) &&
      (next === '' || (last !== undefined && compare(run, last) < 0)),
  )
}

/** showArrived puts the runs that have arrived among the others. */
export function showArrived(rows: Rows, compare: Compare): Rows {
  if (rows.arrived.length === 0) return rows
  return limited({ ...rows, shown: [...rows.arrived, ...rows.shown].sort(compare), arrived: [] })
}
