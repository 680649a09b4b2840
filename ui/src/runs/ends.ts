import { callError } from '../api'
import { isFiltered, type Order, type RunFilter } from './filter'
import { mostRows } from './rows'

/** isDenied reports whether a list is refused because of the project. The workflow of a filter may be missing, too. */
export function isDenied(error: unknown, filter: RunFilter): boolean {
  if (error === undefined) return false
  const { kind } = callError(error)
  return kind === 'denied' || (kind === 'missing' && filter.workflow === '')
}

/** isOfFilter reports whether a list fails because of its filter, so that another filter helps. */
export function isOfFilter(error: unknown, filter: RunFilter): boolean {
  const { kind } = callError(error)
  return isFiltered(filter) && (kind === 'invalid' || (kind === 'missing' && filter.workflow !== ''))
}

/** What is below the last row: the end, the next page on its way, or the most rows that are kept and how the list goes on. */
export type ListEnd =
  { kind: 'all' } | { kind: 'more' } | { kind: 'longest' } | { kind: 'continued'; change: Partial<RunFilter> }

/**
 * listEnd returns what is below the last row. `cut` says that rows were dropped to keep no more than the most, `more` that the server has a
 * next page, `last` when the last run was created.
 */
export function listEnd(count: number, more: boolean, cut: boolean, last: number | undefined, order: Order): ListEnd {
  const full = cut || (more && count >= mostRows)
  if (full && order === 'longest') return { kind: 'longest' }
  if (full && last !== undefined) {
    // The bound is exclusive before and inclusive after a moment: a millisecond more keeps the last run in sight.
    const next = new Date(order === 'newest' ? last + 1 : last).toISOString()
    return { kind: 'continued', change: order === 'newest' ? { until: next } : { since: next } }
  }
  return { kind: more ? 'more' : 'all' }
}
