import { useQuery } from '@tanstack/react-query'
import type { Run } from '../gen/signalbox/v1/run_pb'
import { runs } from './clients'

/** runKey is the key of a whole run, with its input, in the cache of queries. */
export const runKey = (project: string, id: string) => ['run', project, id] as const

/** fetchRun reads a whole run. */
export async function fetchRun(project: string, id: string, signal?: AbortSignal): Promise<Run> {
  const { run } = await runs.getRun({ project, id }, signal === undefined ? {} : { signal })
  if (run === undefined) throw new Error('the server returned no run')
  return run
}

/** useRun reads a whole run; with an interval, again and again. */
export const useRun = (project: string, id: string, interval: number | false = false) =>
  useQuery({
    queryKey: runKey(project, id),
    queryFn: ({ signal }) => fetchRun(project, id, signal),
    enabled: id !== '',
    refetchInterval: interval,
  })

const ended = new Set(['completed', 'failed', 'canceled', 'terminated', 'timed_out'])

/** hasEnded reports whether a status is final. */
export const hasEnded = (status: string): boolean => ended.has(status)
