import type { RunFilter } from '../gen/signalbox/v1/run_pb'
import type { Zone } from '../kit'
import { filterChips, filterFromMessage } from '../runs/filter'

/** conditions writes what a batch selected its runs by. */
export function conditions(filter: RunFilter | undefined, zone: Zone): string {
  if (filter === undefined) return 'runs given by ID'
  const parts = filterChips(filterFromMessage(filter), zone, `like ${filter.failureGroup.slice(0, 12)}`)
  return parts.length === 0 ? 'all runs' : parts.map(({ text }) => text).join('; ')
}
