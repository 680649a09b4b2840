import type { Run } from '../gen/signalbox/v1/run_pb'
import type { Tab } from '../kit'

/** related returns the runs that a run is linked to, with what they are to it. */
export const related = (run: Run): { id: string; what: string }[] => [
  ...(run.parentRunId === '' ? [] : [{ id: run.parentRunId, what: `Parent, by its task at ${run.parentPath}` }]),
  ...(run.replayOf === '' ? [] : [{ id: run.replayOf, what: 'Original of this replay' }]),
  ...run.replays.map((id) => ({ id, what: 'Replay of this run' })),
  ...run.children.map((id) => ({ id, what: 'Child, started by this run' })),
]

/** The tabs that show steps: a selected step is beside them. */
export const withSteps = new Set(['steps', 'timeline', 'graph'])

/** runTabs returns the tabs of a run, in the order of the keys that open them. `asked` is the one of the URL. */
export const runTabs = (run: Run, asked: string): Tab[] => [
  { id: 'graph', label: 'Graph' },
  { id: 'timeline', label: 'Timeline' },
  { id: 'steps', label: 'Steps', count: String(run.stepsTotal) },
  { id: 'events', label: 'Events' },
  { id: 'related', label: 'Related', count: String(related(run).length) },
  { id: 'audit', label: 'Audit' },
  { id: 'json', label: 'JSON' },
  // The last one, so that it does not change the numbers that open the others.
  ...(run.waits.length > 0 || asked === 'waits'
    ? [{ id: 'waits', label: 'Waits', count: `${run.waits.length}${run.moreWaits ? '+' : ''}` }]
    : []),
]

/** The place of a run in the list that was shown last. */
export interface Neighbours {
  previous: string | undefined
  next: string | undefined
}

/** neighbours returns the runs before and after a run in a list; undefined if it is not in it. */
export function neighbours(ids: readonly string[], id: string): Neighbours | undefined {
  const at = ids.indexOf(id)
  return at < 0 ? undefined : { previous: at > 0 ? ids[at - 1] : undefined, next: ids[at + 1] }
}

/** temporalAddress returns the address of a run in Temporal's own pages. Only addresses of web pages are links: it comes from a configuration. */
export const temporalAddress = (run: Run): string | undefined =>
  /^https?:\/\//i.test(run.temporal?.url ?? '') ? run.temporal?.url : undefined
