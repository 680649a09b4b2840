import { useQuery } from '@tanstack/react-query'
import { problems } from './clients'

/** The key of everything that is read of problems: a change of one makes all of it old. */
export const problemsKey = ['problems'] as const

/** useProblemCounts returns the number of problems by state, read each 5 s; of all the caller's projects if `project` is empty. */
export const useProblemCounts = (project: string) =>
  useQuery({ queryKey: [...problemsKey, 'counts', project], queryFn: ({ signal }) => problems.countProblems({ project }, { signal }), refetchInterval: 5000 })
