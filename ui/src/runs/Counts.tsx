import { useQuery } from '@tanstack/react-query'
import { clients, now } from '../api'
import type { CountRunsResponse } from '../gen/signalbox/v1/run_pb'
import { formatCount, StatusBadge } from '../kit'
import { countRequest, countsMatch, noFilter, type RunFilter, statuses, views } from './filter'
import styles from './runs.module.css'

/** useCounts counts runs by status and problem, each 5 s. */
export const useCounts = (project: string, filter: RunFilter) =>
  useQuery({
    queryKey: ['run-counts', project, filter.workflow, filter.group, filter.since, filter.from, filter.to],
    queryFn: ({ signal }) => clients.runs.countRuns(countRequest(project, filter, now()), { signal }),
    refetchInterval: 5000,
  })

/** total returns the number of runs of a filter by its counts; undefined where they do not show it. */
export function total(counts: CountRunsResponse | undefined, filter: RunFilter): { count: bigint; more: boolean } | undefined {
  if (counts === undefined || !countsMatch(filter)) return undefined
  const wanted = filter.statuses.length === 0 ? statuses : filter.statuses
  return { count: wanted.reduce((sum, status) => sum + (counts.statuses[status] ?? 0n), 0n), more: wanted.some((status) => counts.more.includes(status)) }
}

/** The numbers of runs by status, as toggles of the filter. */
export function StatusCounts({ project, filter, onToggle }: { project: string; filter: RunFilter; onToggle: (status: string) => void }) {
  const counts = useCounts(project, filter)
  const data = countsMatch(filter) ? counts.data : undefined
  return (
    <div className={styles.counts} role="group" aria-label="Runs by status">
      {statuses.map((status) => (
        <button key={status} type="button" className={styles.view} aria-pressed={filter.statuses.includes(status)} onClick={() => { onToggle(status) }}>
          <StatusBadge of="run" status={status} />
          <span className={styles.number} title={data === undefined ? 'The number is not known: runs are counted by workflow, group and time' : undefined}>
            {data === undefined ? '–' : formatCount(data.statuses[status] ?? 0n, data.more.includes(status))}
          </span>
        </button>
      ))}
    </div>
  )
}

/** The views, with the number of runs that have a problem. */
export function Views({ project, current, onChoose }: { project: string; current: string; onChoose: (view: (typeof views)[number]) => void }) {
  const counts = useCounts(project, noFilter)
  const problems = counts.data === undefined ? undefined : Object.values(counts.data.problems).reduce((sum, count) => sum + count, 0n)
  return (
    <div className={styles.views} role="group" aria-label="Views">
      {views.map((view) => (
        <button key={view.id} type="button" className={styles.view} aria-pressed={current === view.id} onClick={() => { onChoose(view) }}>
          {view.name}
          {view.id === 'problems' ? <span className={styles.number}>{problems === undefined ? '–' : formatCount(problems)}</span> : null}
        </button>
      ))}
    </div>
  )
}
