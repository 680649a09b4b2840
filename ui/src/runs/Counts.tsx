import { useQuery } from '@tanstack/react-query'
import { AnnotationLegend, AnnotationMarks, annotationsIn, useAnnotations } from '../annotations'
import { callError, clients, milliseconds, now, timestamp } from '../api'
import type { CountRunsResponse } from '../gen/signalbox/v1/run_pb'
import { type Bar, formatCount, Histogram, StatusBadge, type Tone } from '../kit'
import { bounds, bucketLength, countRequest, type RunFilter, selection, statuses, writeFilter } from './filter'
import styles from './runs.module.css'

const filterKey = (filter: RunFilter) => JSON.stringify(writeFilter({ ...filter, statuses: [], order: 'newest' }))

/**
 * useCounts counts the runs of a filter by status, whatever statuses it selects, and the stuck ones by code, each 5 s. The list comes first: numbers
 * that are asked for once it is `listed` take no time from it.
 */
export const useCounts = (project: string, filter: RunFilter, listed: boolean) =>
  useQuery({
    enabled: listed,
    queryKey: ['run-counts', project, filterKey(filter)],
    queryFn: ({ signal }) =>
      clients.runs.countRuns(countRequest(project, { ...filter, statuses: [] }, now()), { signal }),
    refetchInterval: 5000,
  })

/** total returns the number of runs of a filter by its counts; undefined while they are not known. */
export function total(
  counts: CountRunsResponse | undefined,
  filter: RunFilter,
): { count: bigint; more: boolean } | undefined {
  if (counts === undefined) return undefined
  const wanted = filter.statuses.length === 0 ? statuses : filter.statuses
  return {
    count: wanted.reduce((sum, status) => sum + (counts.statuses[status] ?? 0n), 0n),
    more: wanted.some((status) => counts.more.includes(status)),
  }
}

/** From the baseline up: what went wrong is comparable from bar to bar. */
const series: { name: string; tone: Tone; statuses: string[] }[] = [
  { name: 'Failed', tone: 'red', statuses: ['failed', 'timed_out'] },
  { name: 'Canceled', tone: 'slate', statuses: ['canceled', 'terminated'] },
  { name: 'Completed', tone: 'green', statuses: ['completed'] },
  { name: 'Open', tone: 'blue', statuses: ['queued', 'running', 'waiting'] },
]

const day = 86_400_000

/** The runs of the filter by the time at which they were queued; of the last 24 hours where the filter has no begin. */
export function RunHistogram({
  project,
  filter,
  listed,
  onPeriod,
}: {
  project: string
  filter: RunFilter
  listed: boolean
  onPeriod: (since: string, until: string) => void
}) {
  const query = useQuery({
    enabled: listed,
    queryKey: ['run-buckets', project, filterKey(filter), filter.statuses.join(',')],
    queryFn: async ({ signal }) => {
      const time = now()
      const { since, until } = bounds(filter, time)
      const end = until ?? time
      const start = since ?? end - day
      const bucket = bucketLength(end - start)
      const { buckets } = await clients.runs.countRuns(
        {
          project,
          filter: { ...selection(filter, time), since: timestamp(start), until: timestamp(end) },
          bucket: { seconds: BigInt(bucket / 1000) },
        },
        { signal },
      )
      return buckets.map((b, i): Bar => ({
        start: milliseconds(b.start) ?? start,
        end: milliseconds(buckets[i + 1]?.start) ?? end,
        counts: series.map((s) => s.statuses.reduce((sum, status) => sum + Number(b.statuses[status] ?? 0n), 0)),
      }))
    },
    refetchInterval: 15_000,
    placeholderData: (before) => before,
  })
  const bars = query.data ?? []
  const to = bounds(filter, now()).until
  // The bars move on with the time; from the full minute, what is around them is not read again each time.
  const annotations = useAnnotations(
    project,
    bars[0] === undefined ? undefined : Math.floor(bars[0].start / 60_000) * 60_000,
    to,
  )
  const around = annotationsIn(annotations.data?.annotations ?? [], bars[0]?.start ?? 0, bars.at(-1)?.end ?? 0)
  return (
    <div className={styles.histogram}>
      {query.isError ? (
        <span className={styles.number}>The numbers over time are not known: {callError(query.error).message}</span>
      ) : (
        <Histogram
          label="Runs by the time at which they were queued"
          series={series}
          bars={bars}
          now={now()}
          onPeriod={(start, end) => onPeriod(new Date(start).toISOString(), new Date(end).toISOString())}
          marks={(share) => <AnnotationMarks list={around} share={share} now={now()} />}
          legend={<AnnotationLegend query={annotations} list={around} project={project} />}
          note={(start, end) =>
            annotationsIn(around, start, end)
              .map((a) => a.title)
              .join(', ')
          }
        />
      )}
    </div>
  )
}

/** The numbers of runs by status, as toggles of the filter. */
export function StatusCounts({
  project,
  filter,
  listed,
  onToggle,
}: {
  project: string
  filter: RunFilter
  listed: boolean
  onToggle: (status: string) => void
}) {
  const counts = useCounts(project, filter, listed)
  const { data } = counts
  return (
    <div className={styles.counts} role="group" aria-label="Runs by status">
      {statuses.map((status) => (
        <button
          key={status}
          type="button"
          className={styles.view}
          aria-pressed={filter.statuses.includes(status)}
          onClick={() => onToggle(status)}
        >
          <StatusBadge of="run" status={status} />
          <span className={styles.number} title={data === undefined ? 'The number is not known' : undefined}>
            {data === undefined ? '–' : formatCount(data.statuses[status] ?? 0n, data.more.includes(status))}
          </span>
        </button>
      ))}
    </div>
  )
}
