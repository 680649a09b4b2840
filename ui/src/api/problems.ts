import { useQuery } from '@tanstack/react-query'
import type { Problem } from '../gen/signalbox/v1/problem_pb'
import { problems } from './clients'

/** The key of everything that is read of problems: a change of one makes all of it old. */
export const problemsKey = ['problems'] as const

/** useProblemCounts returns the number of problems by state, read each 5 s; of all the caller's projects if `project` is empty. */
export const useProblemCounts = (project: string) =>
  useQuery({
    queryKey: [...problemsKey, 'counts', project],
    queryFn: ({ signal }) => problems.countProblems({ project }, { signal }),
    refetchInterval: 5000,
  })

/** useProblem follows one problem, beginning with what is known of it; undefined while nothing is. */
export const useProblem = (id: string, known?: Problem): Problem | undefined =>
  useQuery({
    queryKey: [...problemsKey, 'one', id],
    queryFn: async ({ signal }) => (await problems.getProblem({ id }, { signal })).problem ?? null,
    enabled: id !== '',
    placeholderData: known,
    refetchInterval: 5000,
  }).data ?? known

/** usePlatformProblems returns the problems of the platform that concern a project: its dispatcher and its workers. */
export const usePlatformProblems = (project: string) =>
  useQuery({
    queryKey: [...problemsKey, 'platform', project],
    queryFn: ({ signal }) =>
      problems.listProblems(
        { project, kinds: ['platform'], states: ['open', 'acknowledged'], pageSize: 10 },
        { signal },
      ),
    refetchInterval: 10_000,
    retry: false,
  })
