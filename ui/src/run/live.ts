import { type QueryClient, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { clients, followStream, hasEnded, runKey } from '../api'
import type { Run, Step, StepSummary, WatchRunResponse } from '../gen/signalbox/v1/run_pb'
import type { WatchResponse } from '../gen/signalbox/v1/watch_pb'
import { markCaught, mergeRun, mergeSteps, mergeSummary } from './merge'
import { addPage, type Found, noneFound } from './search'

export interface Steps {
  steps: Step[]
  summary: StepSummary | undefined
  /** Whether all pages have been read. */
  complete: boolean
  /** Whether the steps have their payloads and attempts; of a long run they are read on demand. */
  full: boolean
  /** Sequence of the run up to which all changes are in the list; a watch goes on after it. */
  since: bigint
}

const stepsKey = (project: string, id: string) => ['run-steps', project, id] as const

/** Runs with more steps are read without payloads and attempts. */
const mostFull = 1000

async function readSteps(queries: QueryClient, project: string, id: string, signal: AbortSignal): Promise<Steps> {
  const key = stepsKey(project, id)
  let pageToken = ''
  // What changes while the pages are read is after this sequence, so the watch sends it again.
  const run = queries.getQueryData<Run>(runKey(project, id))
  const since = run?.sequence ?? 0n
  const full = run !== undefined && run.stepsTotal <= mostFull
  let read: Steps = { steps: [], summary: undefined, complete: false, since, full }
  let published = -Infinity
  do {
    // A short first page is on the screen at once. The others are shown a few times a second: each time the whole tree is made again.
    const page = await clients.runs.listSteps(
      { project, id, pageSize: pageToken === '' ? 200 : 1000, pageToken, view: full ? 'full' : 'basic' },
      { signal },
    )
    read = {
      steps: mergeSteps(read.steps, page.steps),
      summary: page.summary ?? read.summary,
      complete: false,
      since,
      full,
    }
    pageToken = page.nextPageToken
    if (pageToken !== '' && performance.now() - published > 400) {
      queries.setQueryData(key, read)
      published = performance.now()
    }
  } while (pageToken !== '')
  return { ...read, complete: true }
}

/** useSteps reads all listed steps of a run, page by page; what is there is shown while the rest is on its way. */
export function useSteps(project: string, id: string) {
  const queries = useQueryClient()
  return useQuery({
    queryKey: stepsKey(project, id),
    queryFn: ({ signal }) => readSteps(queries, project, id, signal),
    staleTime: Infinity,
    refetchOnWindowFocus: false,
    enabled: id !== '',
  })
}

/** useAttempts reads the steps of a long run again with their attempts, when a page needs those of all steps. */
export function useAttempts(project: string, id: string, wanted: boolean) {
  const queries = useQueryClient()
  const key = stepsKey(project, id)
  return useQuery({
    queryKey: ['run-attempts', project, id],
    queryFn: async ({ signal }) => {
      let pageToken = ''
      let all: Step[] = []
      do {
        const page = await clients.runs.listSteps({ project, id, pageSize: 1000, pageToken }, { signal })
        all = [...all, ...page.steps]
        pageToken = page.nextPageToken
      } while (pageToken !== '')
      queries.setQueryData<Steps>(key, (known) =>
        known === undefined ? known : { ...known, steps: mergeSteps(all, known.steps), full: true },
      )
      return true
    },
    enabled: wanted,
    staleTime: Infinity,
    gcTime: 0,
  })
}

/** useStep reads one step with its payloads, its attempts, and what it waits for; again when it has changed. */
export const useStep = (project: string, id: string, listed: Step) =>
  useQuery<Step>({
    queryKey: ['run-step', project, id, String(listed.number), String(listed.sequence)],
    queryFn: async ({ signal }) => {
      const { step } = await clients.runs.getStep({ project, id, number: listed.number }, { signal })
      if (step === undefined) throw new Error('the server returned no step')
      return step
    },
    staleTime: Infinity,
    placeholderData: (before) => (before?.number === listed.number ? before : undefined),
  })

/** useStepSearch finds steps by a text, their inputs and outputs included; what is found is there while the rest is read. */
export function useStepSearch(run: Run, text: string) {
  const queries = useQueryClient()
  const open = !hasEnded(run.status)
  // Steps that ended after the search are found by the next one.
  const key = ['run-step-search', run.project, run.id, text.trim(), open]
  return useQuery({
    queryKey: key,
    queryFn: async ({ signal }) => {
      const again = queries.getQueryData<Found>(key)?.complete === true
      let pageToken = ''
      let found = noneFound
      for (;;) {
        const page = await clients.runs.listSteps(
          { project: run.project, id: run.id, text: text.trim(), view: 'basic', pageSize: 500, pageToken },
          { signal },
        )
        found = addPage(found, page)
        if (found.complete) return found
        if (!again) queries.setQueryData(key, found)
        pageToken = page.nextPageToken
      }
    },
    enabled: text.trim() !== '',
    refetchInterval: open ? 10_000 : false,
    refetchOnWindowFocus: false,
    staleTime: open ? 0 : 60_000,
    gcTime: 0,
  })
}

/** useLive follows an open run: changes of the run and its steps go to the cache. A dropped stream goes on after the last sequence. */
export function useLive(project: string, id: string, run: Run, steps: Steps | undefined): void {
  const queries = useQueryClient()
  // A run that ended while nothing followed it is followed once more, for its last steps.
  const ready = steps?.complete === true && (!hasEnded(run.status) || steps.since < run.sequence)
  useEffect(() => {
    if (!ready) return undefined
    const stop = new AbortController()
    void follow(queries, project, id, stop.signal)
    return () => {
      stop.abort()
    }
  }, [queries, project, id, ready])
}

async function follow(queries: QueryClient, project: string, id: string, signal: AbortSignal): Promise<void> {
  const refresh = refreshRun(queries, project, id, signal)
  let after = queries.getQueryData<Steps>(stepsKey(project, id))?.since ?? 0n
  await followStream<WatchRunResponse>(
    {
      open: (stop) =>
        clients.runs.watchRun(
          {
            project,
            id,
            afterSequence: after,
            view: queries.getQueryData<Steps>(stepsKey(project, id))?.full === true ? 'full' : 'heads',
          },
          { signal: stop },
        ),
      onMessage: ({ run, steps, summary, caught }) => {
        if (run === undefined) return false
        if (run.sequence > after) after = run.sequence
        queries.setQueryData<Run>(runKey(project, id), (known) => mergeRun(known, run))
        queries.setQueryData<Steps>(stepsKey(project, id), (known) =>
          known === undefined || (steps.length === 0 && summary === undefined && known.since === after)
            ? known
            : {
                steps: markCaught(mergeSteps(known.steps, steps), caught),
                summary: mergeSummary(known.summary, summary),
                complete: known.complete,
                since: after,
                full: known.full,
              },
        )
        refresh(run)
        return hasEnded(run.status)
      },
      poll: true,
    },
    signal,
  )
}

/** refreshRun reads the run again, at most once a second, when a watch shows a change: a watch has no waits and no controls of the caller. */
function refreshRun(queries: QueryClient, project: string, id: string, signal: AbortSignal): (run: Run) => void {
  let timer = 0
  let seen = queries.getQueryData<Run>(runKey(project, id))?.sequence ?? -1n
  signal.addEventListener('abort', () => {
    // The last change of an ended run is read even when the watch has ended with it.
    if (timer !== 0) void queries.invalidateQueries({ queryKey: runKey(project, id) })
    window.clearTimeout(timer)
  })
  return (run) => {
    if (run.sequence === seen && !hasEnded(run.status)) return
    seen = run.sequence
    if (timer !== 0) return
    timer = window.setTimeout(() => {
      timer = 0
      void queries.invalidateQueries({ queryKey: runKey(project, id) })
    }, 300)
  }
}

/** useLiveRuns reads open runs of a project again, at most once a second each, when they have changed. One stream follows all of them. */
export function useLiveRuns(project: string, runs: (Run | undefined)[]): void {
  const queries = useQueryClient()
  const open = [
    ...new Set(runs.filter((run) => run !== undefined && !hasEnded(run.status)).map((run) => run?.id)),
  ].join(' ')
  useEffect(() => {
    if (open === '') return undefined
    const stop = new AbortController()
    void followRuns(queries, project, open.split(' '), stop.signal)
    return () => {
      stop.abort()
    }
  }, [queries, project, open])
}

async function followRuns(queries: QueryClient, project: string, ids: string[], signal: AbortSignal): Promise<void> {
  const timers = new Map<string, number>()
  const known = (id: string) => queries.getQueryData<Run>(runKey(project, id))?.sequence ?? 0n
  signal.addEventListener('abort', () => {
    for (const timer of timers.values()) window.clearTimeout(timer)
  })
  await followStream<WatchResponse>(
    {
      open: (stop) =>
        clients.watches.watch(
          {
            project,
            topics: ids.map((id) => ({
              topic: { case: 'run' as const, value: { id, afterSequence: known(id), view: 'heads' } },
            })),
          },
          { signal: stop },
        ),
      onMessage: ({ content }) => {
        const run = content.case === 'run' ? content.value.run : undefined
        if (run === undefined || timers.has(run.id) || run.sequence <= known(run.id)) return false
        timers.set(
          run.id,
          window.setTimeout(() => {
            timers.delete(run.id)
            void queries.invalidateQueries({ queryKey: runKey(project, run.id) })
          }, 1000),
        )
        return false
      },
      poll: true,
    },
    signal,
  )
}
